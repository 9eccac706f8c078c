// Command giantstream-iceberg keeps a table of Apache Iceberg equal to the embeddings topic. It is a program of its own
// because of what a client of Iceberg links (docs/DEPENDENCIES.md).
package main

import (
	"os"

	// The certificates of Mozilla's list, for images and machines that have none of their own.
	_ "golang.org/x/crypto/x509roots/fallback"

	"giantstream/cmd/internal/cli/sinkprocess"
	"giantstream/cmd/internal/icebergsink"
)

func main() { os.Exit(sinkprocess.Main(icebergsink.Kind)) }
