// Command giantstream turns node texts and edges, streamed or from files, into graph-aware
// embeddings. `giantstream help` lists what it can do.
package main

import (
	"os"

	"giantstream/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(nil)) }
