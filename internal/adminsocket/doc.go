// Package adminsocket opens and finds the Unix socket of administration. The mode of
// its file, 0600, lets a caller in: the user of the service, and root.
//
// A service with a data directory has the socket there. Others have it in the run
// directory, which commands search: $RATELIMIT_RUN_DIR alone where it is set; else
// $XDG_RUNTIME_DIR/ratelimit, /run/ratelimit, or ratelimit-UID below the directory for
// temporary files.
package adminsocket
