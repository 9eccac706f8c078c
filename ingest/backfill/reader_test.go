package backfill

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"giantstream/ingest/deadletter"
)

func TestLinesOverTheLimitAreNotKept(t *testing.T) {
	huge := strings.Repeat("x", 3<<20)
	l := newLineReader(strings.NewReader("a\n"+huge+"\nb"), 100<<10)
	var got []record
	for {
		rec, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rec.value = bytes.Clone(rec.value)
		got = append(got, rec)
	}
	if len(got) != 3 || got[2].line != 3 || string(got[2].value) != "b" {
		t.Fatalf("%d records", len(got))
	}
	if o := got[1].over; o == nil || o.size != int64(len(huge)) || len(got[1].value) != deadletter.CutBytes {
		t.Errorf("huge line: %+v, %d bytes kept", o, len(got[1].value))
	}
	if cap(l.buf) > 1<<20 {
		t.Errorf("the reader holds %d bytes", cap(l.buf))
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\n\nbb\n"), 10)
	f.Add([]byte(" \n\t\r\n \nb"), 10)
	f.Add([]byte("\xef\xbb\xbf\n\""), 1)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + (limit&0xffff)%100
		l := newLineReader(bytes.NewReader(data), limit)
		var total int64
		last := int64(0)
		for {
			rec, err := l.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.line <= last {
				t.Fatalf("line %d after %d", rec.line, last)
			}
			last = rec.line
			if rec.over == nil && len(rec.value) > limit {
				t.Fatalf("%d bytes kept, limit %d", len(rec.value), limit)
			}
			if rec.over != nil && rec.over.size <= int64(limit) {
				t.Fatalf("%d bytes are over the limit of %d", rec.over.size, limit)
			}
			total += int64(len(rec.value))
		}
		if total > int64(len(data)) {
			t.Fatalf("%d bytes out of %d", total, len(data))
		}
	})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("id,text\na,\"x\ny\"\nb\n"))
	f.Add([]byte("id\n\"\"\"\n"))
	f.Add([]byte("at,deleted\n007,true\n-5,false\n\xff,x\n"))
	f.Add([]byte("id,text\ra,x\r"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := textOf(bytes.NewReader(data), csvRows)
		if err != nil {
			return
		}
		if data, err = io.ReadAll(text); err != nil {
			t.Fatal(err)
		}
		c, err := newCSVReader(bytes.NewReader(data), 1000, columns{eventTime: "at"})
		if err != nil {
			return
		}
		for {
			rec, err := c.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(rec.value, []byte("{\"")) && bytes.HasSuffix(rec.value, []byte("\"}")) &&
				utf8.Valid(data) && !json.Valid(rec.value) && !bytes.Contains(data, rec.value) {
				t.Fatalf("not JSON: %q", rec.value)
			}
		}
	})
}
