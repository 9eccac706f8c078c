package cli

// version is set by the linker in releases (cmd/dev/release/build).
var version string
