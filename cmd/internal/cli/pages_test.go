package cli

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"giantstream/cmd/internal/cli/command"
)

// A command stands on an indented line, in a block or between backquotes.
var (
	block     = regexp.MustCompile("(?ms)^```.*?^```")
	ownLine   = regexp.MustCompile(`(?m)^[ \t]+(?:\$ )?(?:\./)?giantstream (.*)$`)
	backquote = regexp.MustCompile("`(?:\\./)?giantstream ([^`]*)`")
	word      = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// argumentsIn returns the arguments of each command in a text.
func argumentsIn(text string) (all [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	text = block.ReplaceAllStringFunc(text, func(b string) string { return strings.ReplaceAll(b, "\n", "\n\t") })
	for _, m := range append(ownLine.FindAllStringSubmatch(text, -1), backquote.FindAllStringSubmatch(text, -1)...) {
		var args []string
		for _, w := range word.FindAllString(m[1], -1) {
			if strings.ContainsAny(w[:1], "|;&><#(") {
				break
			}
			if w == "…" {
				continue
			}
			args = append(args, strings.Trim(w, `'"`))
		}
		if len(args) > 0 {
			all = append(all, args)
		}
	}
	return all
}

// Every command that a page or a help text shows exists, with its flags.
func TestPagesShowCommandsThatExist(t *testing.T) {
	texts := map[string]string{}
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "measurements" || d.Name() == "decisions"): // what was true then
			return filepath.SkipDir
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case filepath.Ext(path) == ".md" && d.Name() != "CHANGELOG.md":
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	program := rootCommand(&command.App{Out: io.Discard, Err: io.Discard})
	each(program, func(c *cobra.Command) { texts["help of "+c.CommandPath()] = c.Example + "\n" + c.Long })
	checked := 0
	for where, text := range texts {
		for _, args := range argumentsIn(text) {
			checked++
			if what := unknown(program, args); what != "" {
				t.Errorf("%s: giantstream %s: there is no %s", where, strings.Join(args, " "), what)
			}
		}
	}
	if checked < 300 {
		t.Errorf("%d commands were found", checked)
	}
}

// unknown returns the first command or flag of a command line that does not exist, "" for none. What flags have and
// whether they may be together is not looked at: a page may leave that out.
func unknown(program *cobra.Command, args []string) string {
	c, rest, err := program.Find(args)
	if err != nil {
		return args[0]
	}
	if c.HasSubCommands() && args[0] != "help" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return rest[0]
	}
	c.InitDefaultHelpFlag()
	for _, arg := range rest {
		name, _, _ := strings.Cut(arg, "=")
		if long, ok := strings.CutPrefix(name, "--"); ok && long != "" && c.Flag(long) == nil {
			return name
		}
		if len(name) == 2 && name[0] == '-' && unicode.IsLetter(rune(name[1])) && shorthand(c, name[1:]) == nil {
			return name
		}
	}
	return ""
}

func shorthand(c *cobra.Command, letter string) *pflag.Flag {
	return cmp.Or(c.Flags().ShorthandLookup(letter), c.InheritedFlags().ShorthandLookup(letter))
}

// each calls f with a command and all below it.
func each(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		each(sub, f)
	}
}
