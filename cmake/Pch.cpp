// Exists so that the precompiled header has an owner the other targets reuse.
