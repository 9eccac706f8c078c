package heads

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrSplitFile: a file is no list of ids with their parts.
var ErrSplitFile = errors.New("not a split; each line must be id,part or {\"id\": …, \"split\": …} " +
	"with the part train, valid or test")

// maxSplitLine bounds a line of a split's file.
const maxSplitLine = 1 << 20

// ReadSplit reads a split from a file that names a part for each node: CSV
// with the columns id and split (a header of these names may be missing), or
// JSON lines with these fields. Parts are train, valid (or validation, val) and
// test. ids are the nodes' ids by position; ids that are not among them, and
// nodes without class, are left out and counted in skipped.
func ReadSplit(r io.Reader, ids, classes []string) (s Split, skipped int, err error) {
	if len(ids) != len(classes) {
		return s, 0, fmt.Errorf("split: %d ids of %d nodes", len(ids), len(classes))
	}
	position := make(map[string]int32, len(ids))
	for i, id := range ids {
		position[id] = int32(i)
	}
	taken := make([]bool, len(ids))
	take := func(line int, id, part string) error {
		to := s.part(part)
		if to == nil {
			return fmt.Errorf("split, line %d: part %q: %w", line, part, ErrSplitFile)
		}
		i, known := position[id]
		if !known || classes[i] == "" {
			skipped++
			return nil
		}
		if taken[i] {
			return fmt.Errorf("split, line %d: node %q for the second time: %w", line, id, ErrSplitFile)
		}
		taken[i] = true
		*to = append(*to, i)
		return nil
	}
	in := bufio.NewReader(r)
	first, err := firstByte(in)
	switch {
	case errors.Is(err, io.EOF):
		return s, 0, fmt.Errorf("split: the file is empty: %w", ErrSplitFile)
	case err != nil:
		return s, 0, fmt.Errorf("split: %w", err)
	case first == '{':
		err = readSplitLines(in, take)
	default:
		err = readSplitCSV(in, take)
	}
	if err != nil {
		return s, skipped, err
	}
	s, err = s.sorted()
	return s, skipped, err
}

// part returns the part of that name, nil if there is none.
func (s *Split) part(name string) *[]int32 {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "train":
		return &s.Train
	case "valid", "val", "validation":
		return &s.Validation
	case "test":
		return &s.Test
	}
	return nil
}

// firstByte returns the first byte that is no white space and leaves it to be read.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace([]byte{b})) > 0 {
			return b, in.UnreadByte()
		}
	}
}

func readSplitLines(in *bufio.Reader, take func(line int, id, part string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxSplitLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var row struct{ ID, Split *string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return fmt.Errorf("split, line %d: %w: %w", n, ErrSplitFile, err)
		}
		if row.ID == nil || row.Split == nil {
			return fmt.Errorf("split, line %d: id or split is missing: %w", n, ErrSplitFile)
		}
		if err := take(n, *row.ID, *row.Split); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("split, line %d: %w", n+1, err)
	}
	return nil
}

func readSplitCSV(in io.Reader, take func(line int, id, part string) error) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	id, part := 0, 1 // columns
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("split: %w: %w", ErrSplitFile, err)
		}
		line, _ := rows.FieldPos(0)
		if first && header(row, &id, &part) {
			continue
		}
		if len(row) <= max(id, part) {
			return fmt.Errorf("split, line %d: %d columns: %w", line, len(row), ErrSplitFile)
		}
		if err := take(line, row[id], row[part]); err != nil {
			return err
		}
	}
}

// header finds the columns, if row is a header.
func header(row []string, id, part *int) bool {
	i, p := -1, -1
	for k, name := range row {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "id", "node_id":
			i = k
		case "split":
			p = k
		}
	}
	if i < 0 || p < 0 {
		return false
	}
	*id, *part = i, p
	return true
}
