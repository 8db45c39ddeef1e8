// Nothing: the library that owns the precompiled header needs a file.
