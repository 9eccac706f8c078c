package fit

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
)

// Records come back as they went in, whether in memory, in a file, or moved
// from one to the other half-way, and a file is gone when the spool is closed.
func TestSpoolGivesBackWhatItTook(t *testing.T) {
	var records [][]byte
	r := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{0, 1, 10, chunkSize - 20, 30, 0, 3*chunkSize + 5, 7, 0} {
		record := make([]byte, size)
		for i := range record {
			record[i] = byte(r.Uint32())
		}
		records = append(records, record)
	}
	for name, limit := range map[string]int64{
		"memory": -1, "just enough": 4*chunkSize + 33, "file": 0, "moved": chunkSize,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			s := newSpool(limit)
			for _, record := range records {
				if err := s.append(record); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.seal(); err != nil {
				t.Fatal(err)
			}
			if inFile, want := s.file != nil, limit >= 0 && limit < s.size(); inFile != want {
				t.Errorf("%d bytes with a limit of %d: in a file %v, want %v", s.size(), limit, inFile, want)
			}
			if s.len() != len(records) {
				t.Errorf("%d records, want %d", s.len(), len(records))
			}
			var buffer []byte
			for _, i := range r.Perm(len(records)) {
				var err error
				if buffer, err = s.recordAt(i, buffer); err != nil || !bytes.Equal(buffer, records[i]) {
					t.Errorf("record %d: got %d bytes (%v), want %d", i, len(buffer), err, len(records[i]))
				}
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
}

func TestSpoolSaysWhatToDoWithoutDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	s := newSpool(3)
	if err := s.append([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	err := s.append([]byte("d"))
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("TMPDIR")) {
		t.Errorf("got %v, want an error that names TMPDIR", err)
	}
}
