package ogb

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
)

// text keeps one part of a node's text, or counts it as unknown.
func (im *importer) text(i int64, known bool, p part, text []byte) error {
	if !known {
		im.stats.UnknownTexts++
		return nil
	}
	return im.texts.add(i, p, bytes.TrimSpace(text))
}

// bad counts a line that is no text.
func (im *importer) bad(l *lines, what string) {
	if im.stats.BadTexts++; im.stats.BadTexts == 1 {
		im.stats.FirstBad = l.fault("%s", what).Error()
	}
}

// forEachLine calls do for every line of text files, with progress over their bytes.
func (im *importer) forEachLine(paths []string, do func(file int, l *lines, line []byte) error) error {
	all := make([]*lines, 0, len(paths))
	defer func() {
		for _, l := range all {
			_ = l.close() // it is read
		}
	}()
	var size int64
	for _, p := range paths {
		l, err := openLines(p)
		if err != nil {
			return err
		}
		l.read = im.Progress.Add
		all = append(all, l)
		if info, err := os.Stat(l.path); err == nil {
			size += info.Size()
		}
	}
	im.Progress.Stage("read texts", size)
	for file, l := range all {
		for {
			line, err := l.next()
			if errors.Is(err, errEnd) {
				break
			}
			if err == nil {
				err = do(file, l, line)
			}
			if err == nil && l.n&0xfff == 0 {
				err = im.ctx.Err()
			}
			if err != nil {
				return err
			}
		}
	}
	return im.texts.sealed()
}

// arxivTexts reads titleabs.tsv: paper, title, abstract.
func (im *importer) arxivTexts() error {
	papers, err := im.papers()
	if err != nil {
		return err
	}
	return im.forEachLine([]string{im.path("titleabs.tsv.gz")}, func(_ int, l *lines, line []byte) error {
		fields := bytes.SplitN(line, []byte("\t"), 3)
		paper, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if len(fields) < 3 || err != nil {
			if l.n > 1 { // the first line may be a header
				im.bad(l, "want PAPER<tab>TITLE<tab>ABSTRACT")
			}
			return nil
		}
		i, known := papers.node(paper)
		if err := im.text(i, known, title, fields[1]); err != nil || !known {
			return err
		}
		return im.text(i, known, body, fields[2])
	})
}

// paperTexts reads idx_title.tsv and idx_abs.tsv: node index and title or abstract. Copies of these files are about
// that have papers in place of indices; a key beyond the last node tells them.
func (im *importer) paperTexts() error {
	files := []string{im.path("paperinfo", "idx_title.tsv"), im.path("paperinfo", "idx_abs.tsv")}
	byPaper, err := im.keyedByPaper(files[0])
	if err != nil {
		return err
	}
	var papers *papers
	if byPaper {
		if papers, err = im.papers(); err != nil {
			return err
		}
	}
	return im.forEachLine(files, func(file int, l *lines, line []byte) error {
		key, text, found := bytes.Cut(line, []byte("\t"))
		i, err := strconv.ParseInt(string(key), 10, 64)
		if err != nil || !found {
			if l.n > 1 {
				im.bad(l, "want INDEX<tab>TEXT")
			}
			return nil
		}
		known := i >= 0 && i < im.nodes
		if byPaper {
			i, known = papers.node(i)
		}
		return im.text(i, known, part(file), text)
	})
}

// keyedByPaper looks at the first lines of a file.
func (im *importer) keyedByPaper(path string) (bool, error) {
	const look = 1000
	l, err := openLines(path)
	if err != nil {
		return false, err
	}
	defer l.close() //nolint:errcheck // it is read
	for range look {
		line, err := l.next()
		if errors.Is(err, errEnd) {
			break
		}
		if err != nil {
			return false, err
		}
		key, _, _ := bytes.Cut(line, []byte("\t"))
		if i, err := strconv.ParseInt(string(key), 10, 64); err == nil && i >= im.nodes {
			return true, nil
		}
	}
	return false, nil
}

// productTexts reads Amazon-3M's trn.json and tst.json: uid, title and content.
func (im *importer) productTexts() error {
	n, err := openNames(im.path("mapping", im.mapping))
	if err != nil {
		return err
	}
	defer n.close() //nolint:errcheck // it is read
	nodes := make(map[string]int64, im.nodes)
	for i := range im.nodes {
		name, err := n.next(i)
		if err != nil {
			return err
		}
		nodes[name] = i
	}
	files := []string{im.path("Amazon-3M.raw", "trn.json.gz"), im.path("Amazon-3M.raw", "tst.json.gz")}
	return im.forEachLine(files, func(_ int, l *lines, line []byte) error {
		var row struct{ UID, Title, Content string }
		if err := json.Unmarshal(line, &row); err != nil || row.UID == "" {
			im.bad(l, `want {"uid": …, "title": …, "content": …}`)
			return nil //nolint:nilerr // it is counted
		}
		i, known := nodes[row.UID]
		if err := im.text(i, known, title, []byte(row.Title)); err != nil || !known {
			return err
		}
		return im.text(i, known, body, []byte(row.Content))
	})
}

// papers finds the nodes of papers.
type papers struct {
	ids   []int64 // ascending
	nodes []int32
}

func (im *importer) papers() (*papers, error) {
	n, err := openNames(im.path("mapping", im.mapping))
	if err != nil {
		return nil, err
	}
	defer n.close() //nolint:errcheck // it is read
	byNode := make([]int64, im.nodes)
	p := &papers{ids: make([]int64, im.nodes), nodes: make([]int32, im.nodes)}
	for i := range im.nodes {
		name, err := n.next(i)
		if err != nil {
			return nil, err
		}
		if byNode[i], err = strconv.ParseInt(strings.TrimSpace(name), 10, 64); err != nil {
			return nil, n.fault("%q is no paper's number", name)
		}
		p.nodes[i] = int32(i)
	}
	slices.SortFunc(p.nodes, func(a, b int32) int {
		switch x, y := byNode[a], byNode[b]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return int(a - b)
	})
	for k, i := range p.nodes {
		p.ids[k] = byNode[i]
	}
	return p, nil
}

func (p *papers) node(paper int64) (int64, bool) {
	k, found := slices.BinarySearch(p.ids, paper)
	if !found {
		return 0, false
	}
	return int64(p.nodes[k]), true
}
