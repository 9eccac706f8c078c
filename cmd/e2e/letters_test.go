package e2e_test

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"giantstream/ingest/decode"
)

// letter is what `dlq list --json` prints of a dead letter.
type letter struct {
	Origin string      `json:"origin"`
	Code   decode.Code `json:"code"`
	Value  []byte      `json:"value"`
	Size   int64       `json:"size"`
}

func deadLetters(t *testing.T, flags []string) []letter {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(succeed(t, slices.Concat([]string{"dlq", "list", "--json"}, flags)...)))
	var out []letter
	for {
		var l letter
		switch err := dec.Decode(&l); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		}
		out = append(out, l)
	}
}
