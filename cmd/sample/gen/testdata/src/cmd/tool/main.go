// Command tool is no package.
package main

func main() {}
