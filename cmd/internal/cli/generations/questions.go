package generations

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"giantstream/cmd/internal/cli/command"
)

// maxQuestion bounds a line of a file of questions, as the service bounds a body.
const maxQuestion = 1 << 20

// askAll answers the questions of a file, one a line ("-": the standard input), with an answer a line. A question
// without an answer has a line that says why.
func askAll(ctx context.Context, a *command.App, file string, ask func(question []byte) (any, error)) (err error) {
	in := io.NopCloser(os.Stdin)
	if file != "-" {
		if in, err = os.Open(file); err != nil {
			return fmt.Errorf("read the questions: %w", err)
		}
	}
	defer in.Close()
	lines, out := bufio.NewScanner(in), json.NewEncoder(a.Out)
	lines.Buffer(nil, maxQuestion)
	out.SetEscapeHTML(false)
	line, asked, failed := 0, 0, 0
	for lines.Scan() {
		line++
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		asked++
		answer, err := ask(lines.Bytes())
		if err != nil {
			failed++
			answer = map[string]string{"error": fmt.Sprintf("line %d: %v", line, err)}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read the questions: line %d has more than %d bytes", line+1, maxQuestion)
	} else if err != nil {
		return fmt.Errorf("read the questions, line %d: %w", line+1, err)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s had no answer; the lines of these say why", failed,
			command.Plural(asked, "question"))
	}
	return nil
}

// checkAlone refuses a file of questions beside a question.
func checkAlone(file string, given bool) error {
	if file != "" && given {
		return errors.New("a question and --questions; the questions of a file have all that is asked")
	}
	return nil
}
