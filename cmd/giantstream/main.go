// Command giantstream turns node texts and edges, streamed or from files, into graph-aware
// embeddings. `giantstream help` lists what it can do.
package main

import (
	"os"

	// The certificates of Mozilla's list, for images and machines that have none of their own.
	_ "golang.org/x/crypto/x509roots/fallback"

	"giantstream/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(nil)) }
