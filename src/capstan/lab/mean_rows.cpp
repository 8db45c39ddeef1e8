#include "capstan/lab/mean_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "capstan/kernels/weighted_sum.h"

namespace capstan::lab {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The gradients of bags, to be summed by the rows that the bags contain.
struct Sums {
  std::vector<std::int64_t> rows;   // increasing
  std::vector<std::size_t> begins;  // of a row's terms; one more than rows
  std::vector<kernels::Term> terms;
};

Sums sums_by_row(const at::Tensor& ids, const at::Tensor& bags) {
  const auto each = ids.accessor<std::int64_t, 2>();
  std::vector<std::pair<std::int64_t, std::int64_t>> uses;  // (row, bag)
  uses.reserve(static_cast<std::size_t>(ids.numel()));
  for (std::int64_t bag = 0; bag < each.size(0); ++bag)
    for (std::int64_t i = 0; i < each.size(1); ++i) uses.emplace_back(each[bag][i], bag);
  std::sort(uses.begin(), uses.end());

  Sums sums;
  for (std::size_t i = 0; i < uses.size();) {
    const auto [row, bag] = uses[i];
    const auto first = i;
    while (i < uses.size() && uses[i] == uses[first]) ++i;
    if (sums.rows.empty() || sums.rows.back() != row) {
      sums.rows.push_back(row);
      sums.begins.push_back(sums.terms.size());
    }
    sums.terms.push_back({bags.data_ptr<float>() + bag * bags.size(1),
                          static_cast<float>(i - first) / static_cast<float>(each.size(1))});
  }
  sums.begins.push_back(sums.terms.size());
  return sums;
}

class MeanRows : public torch::autograd::Function<MeanRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight, const at::Tensor& ids) {
    context->save_for_backward({ids});
    context->saved_data["rows"] = weight.size(0);
    constexpr std::int64_t kMean = 1;
    const auto begins = at::arange(0, ids.numel(), ids.size(1), ids.options());
    return std::get<0>(at::embedding_bag(weight, ids.reshape(-1), begins, false, kMean));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto bags = gradients[0].contiguous();
    const auto columns = bags.size(1);
    const auto sums = sums_by_row(context->get_saved_variables()[0], bags);
    const auto count = static_cast<std::int64_t>(sums.rows.size());
    const auto rows = at::empty({1, count}, at::kLong), values = at::empty({count, columns}, at::kFloat);
    std::copy(sums.rows.begin(), sums.rows.end(), rows.data_ptr<std::int64_t>());

    at::parallel_for(0, count, 64, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        kernels::weighted_sum(
            std::span(sums.terms).subspan(sums.begins[i], sums.begins[i + 1] - sums.begins[i]), 0,
            {values.data_ptr<float>() + i * static_cast<std::size_t>(columns),
             static_cast<std::size_t>(columns)});
    });
    auto gradient = at::_sparse_coo_tensor_unsafe(rows, values,
                                                  {context->saved_data["rows"].toInt(), columns}, at::kFloat);
    return {gradient._coalesced_(true), {}};
  }
};

}  // namespace

at::Tensor mean_rows(const at::Tensor& weight, const at::Tensor& ids) {
  return MeanRows::apply(weight, ids);
}

}  // namespace capstan::lab
