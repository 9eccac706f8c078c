package main

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// invoice is an order of items by their codes.
type invoice struct {
	number   string
	time     time.Time
	customer string   // empty where it is unknown
	items    []string // ascending
	texts    map[string]string
}

// product is the code of an item: other lines are postage, fees and notes.
var product = regexp.MustCompile(`^[0-9]{5}`)

// readInvoices reads invoices.csv.gz in the order of their times. Cancellations and returned lines are left out.
func readInvoices(path string) (all []*invoice, err error) {
	f, err := os.Open(path) //nolint:gosec // a file that the command line names
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	in := csv.NewReader(z)
	in.FieldsPerRecord = 8
	if _, err := in.Read(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	byNumber := map[string]*invoice{}
	for {
		r, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		number, code, text, quantity := r[0], r[1], r[2], r[3]
		if number[0] == 'C' || quantity[0] == '-' || !product.MatchString(code) {
			continue
		}
		at, err := time.Parse(time.DateTime, r[4])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		v := byNumber[number]
		if v == nil {
			v = &invoice{number: number, time: at, customer: r[6], texts: map[string]string{}}
			byNumber[number] = v
		}
		if text = strings.TrimSpace(text); isUpper(text) || v.texts[code] == "" {
			v.texts[code] = text
		}
	}
	for _, v := range byNumber {
		v.items = slices.Sorted(maps.Keys(v.texts))
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *invoice) int {
		return cmp.Or(a.time.Compare(b.time), strings.Compare(a.number, b.number))
	})
	return all, nil
}

// isUpper says whether a text is the description of an item; notes are in lower case.
func isUpper(text string) bool {
	return strings.ContainsFunc(text, unicode.IsLetter) && text == strings.ToUpper(text)
}

// textsOf returns the most frequent description of each item.
func textsOf(invoices []*invoice) map[string]string {
	counts := map[string]map[string]int{}
	for _, v := range invoices {
		for code, text := range v.texts {
			if !isUpper(text) {
				continue
			}
			if counts[code] == nil {
				counts[code] = map[string]int{}
			}
			counts[code][text]++
		}
	}
	texts := map[string]string{}
	for code, of := range counts {
		texts[code] = slices.MaxFunc(slices.Sorted(maps.Keys(of)), func(a, b string) int { return of[a] - of[b] })
	}
	return texts
}
