package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"giantstream/internal/seal"
)

func FuzzDecode(f *testing.F) {
	doc := &Document{Format: format, Number: 3, Seq: 7, Writer: "w-1", State: 1, Applied: map[string]int64{"nodes": 9},
		Files: []File{{Name: "000004.sst", Key: FileKey(0, 2, "abc", 1), Bytes: 10,
			SHA256: strings.Repeat("0a", 32)}}}
	data, err := doc.encode(seal.Place{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(bytes.ReplaceAll(data, []byte("000004.sst"), []byte("../../etc/passwd")))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decode(data, seal.Place{})
		if err != nil {
			if !errors.Is(err, ErrBad) {
				t.Errorf("%v is no ErrBad", err)
			}
			return
		}
		for _, file := range c.Files {
			if strings.ContainsAny(file.Name, `/\`) || !strings.HasPrefix(file.Key, fmt.Sprintf("shards/%d/", c.Shard)) {
				t.Errorf("accepted file %q in %q", file.Name, file.Key)
			}
		}
		again, err := c.encode(seal.Place{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again, seal.Place{}); err != nil {
			t.Errorf("does not read what it wrote: %v", err)
		}
	})
}
