#pragma once

#include <string>

// Quantities with units on the command line. Each function throws UserError that names `what`, the text and
// what is allowed. Thread-safe.
namespace capstan::simulate {

// Bytes per second: "10Gbps" (bits), "1.25GB/s" (bytes), "inf".
double parse_rate(const std::string& what, const std::string& text);
// Seconds: "50us", "1ms", "2s", "5m", "1h".
double parse_time(const std::string& what, const std::string& text);
// Per second: "1/h", "3/day", "0".
double parse_frequency(const std::string& what, const std::string& text);

// Format with three digits: "1.25 GB/s", "50 µs", "17.2 TB".
std::string rate_text(double bytes_per_second);
std::string time_text(double seconds);
std::string bytes_text(double bytes);

}  // namespace capstan::simulate
