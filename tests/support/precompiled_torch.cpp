// Empty: the library that owns the precompiled header needs a source file.
