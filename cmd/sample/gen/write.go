package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
)

// writeLines writes gzipped JSON lines. The gzip header carries no time and no name, so equal lines
// give equal files.
func writeLines[T any](path string, lines []T) error {
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(zip)
	enc.SetEscapeHTML(false)
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}
