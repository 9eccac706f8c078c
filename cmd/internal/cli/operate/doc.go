// Package operate has the commands by which an operator watches, checks, repairs and moves a pipeline that exists, a
// file per command.
package operate
