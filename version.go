package perdure

// Version is the version of this source tree, without a leading "v". The command line,
// the server and the manual pages report it. A release is tagged with the same number,
// and CHANGELOG.md has a section for it.
const Version = "0.1.0"
