package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxIDLine bounds a line of a file of ids.
const maxIDLine = 64 << 10

// ReadIDs returns ids of a command line, and those of a file: one a line, empty lines left out. The file "-" is the
// standard input.
func ReadIDs(args []string, file string) (ids map[string]bool, err error) {
	ids = map[string]bool{}
	for _, id := range args {
		ids[id] = true
	}
	if file != "" {
		in := io.NopCloser(os.Stdin)
		if file != "-" {
			if in, err = os.Open(file); err != nil {
				return nil, fmt.Errorf("read the ids: %w", err)
			}
		}
		defer in.Close()
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxIDLine)
		for lines.Scan() {
			if id := strings.TrimSuffix(lines.Text(), "\r"); id != "" {
				ids[id] = true
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("read the ids of %s: %w", file, err)
		}
	}
	delete(ids, "")
	if len(ids) == 0 {
		return nil, UsageError(errors.New("give ids, as arguments or in a file, one a line"))
	}
	return ids, nil
}
