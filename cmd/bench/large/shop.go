package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A shop has categories, each with words of its own and three others that go with it. Small numbers are drawn more
// often: of categories by the power 1.5 of a uniform number, of the items of a category by 2.5, of words by 2.
const (
	itemsOfCategory = 500
	wordsOfCategory = 40
	allWords        = 40000
	everydayWords   = 300
	ordersPerItem   = 1.2
	ordersOfOne     = 4 // customer, on average
	meanLines       = 8 // of an order, which has 60 at most
	mostLines       = 60
)

// shop draws products and orders.
type shop struct {
	*rand.Rand
	words    []string
	own      [][]string // words of each category
	complete [][3]int   // categories that go with each
	items    [][]int    // of each category
}

// lower draws a number below n, by a power of a uniform one.
func (s *shop) lower(n int, power float64) int { return int(float64(n) * math.Pow(s.Float64(), power)) }

func newShop(items int) *shop {
	s := &shop{Rand: rand.New(rand.NewPCG(7, 8))} //nolint:gosec // a drawing that can be repeated
	syllables := strings.Fields("ba ko ri ten mu la sor vi ped ga no shi tor el an qu ze wa li ster dra fo hem ix jo")
	for range allWords {
		word := ""
		for range 2 + s.IntN(3) {
			word += syllables[s.IntN(len(syllables))]
		}
		s.words = append(s.words, word)
	}
	categories := max(1, items/itemsOfCategory)
	s.items = make([][]int, categories)
	for range categories {
		own := make([]string, wordsOfCategory)
		for k := range own {
			own[k] = s.words[s.lower(allWords, 2)]
		}
		s.own = append(s.own, own)
		s.complete = append(s.complete, [3]int{s.IntN(categories), s.IntN(categories), s.IntN(categories)})
	}
	return s
}

// writeShop writes products.csv and orders.csv of a year.
func writeShop(dir string, items int) error {
	s := newShop(items)
	return errors.Join(write(filepath.Join(dir, "products.csv"), func(w io.Writer) { s.products(w, items) }),
		write(filepath.Join(dir, "orders.csv"), func(w io.Writer) { s.orders(w, int(ordersPerItem*float64(items))) }))
}

func write(name string, fill func(io.Writer)) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f) // keeps the first error
	fill(w)
	return w.Flush()
}

func (s *shop) products(w io.Writer, items int) {
	fmt.Fprintln(w, "sku,title,description,price,stock,brand,category")
	for i := range items {
		c := s.lower(len(s.items), 1.5)
		s.items[c] = append(s.items[c], i)
		title, description := make([]string, 3+s.IntN(5)), make([]string, 5+s.IntN(21))
		for k := range title {
			title[k] = s.own[c][s.IntN(wordsOfCategory)]
		}
		for k := range description {
			if description[k] = s.words[s.IntN(everydayWords)]; s.IntN(5) < 2 {
				description[k] = s.own[c][s.IntN(wordsOfCategory)]
			}
		}
		fmt.Fprintf(w, "P%07d,%s,%s,%.2f,%d,Brand %s,c%d\n", i, strings.Join(title, " "),
			strings.Join(description, " "), math.Exp(3+s.NormFloat64()), max(0, s.IntN(25)-5),
			s.words[everydayWords+s.IntN(400)], c)
	}
}

// orders writes lines of which three of five are of the order's category, three of ten of one that goes with it, and
// the rest of any.
func (s *shop) orders(w io.Writer, orders int) {
	fmt.Fprintln(w, "order,sku,at,customer")
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for o := range orders {
		of := s.lower(len(s.items), 1.5)
		at := begin.Add(time.Duration(float64(o) / float64(orders) * float64(365*24*time.Hour))).Format(time.DateTime)
		customer := s.IntN(orders/ordersOfOne + 1)
		for range min(mostLines, 1+int(s.ExpFloat64()*(meanLines-1))) {
			c := of
			switch x := s.IntN(10); {
			case x == 9:
				c = s.IntN(len(s.items))
			case x >= 6:
				c = s.complete[of][s.IntN(3)]
			}
			if n := len(s.items[c]); n > 0 {
				fmt.Fprintf(w, "%d,P%07d,%s,%d\n", o, s.items[c][s.lower(n, 2.5)], at, customer)
			}
		}
	}
}
