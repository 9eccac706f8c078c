package generation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"giantstream/sink"
	"giantstream/sink/audit"
)

// Audit checks the generations in a store: their documents, and every object that these name.
func Audit(ctx context.Context, a *audit.Audit, now time.Time) error {
	numbers, chosen, err := list(ctx, a.Store)
	if err != nil {
		return err
	}
	if chosen {
		if err := auditChoice(ctx, a); err != nil {
			return err
		}
	}
	if a.Has(firstKey) {
		if err := auditFirst(ctx, a); err != nil {
			return err
		}
	}
	for _, g := range numbers {
		if err := auditOne(ctx, a, g, now); err != nil {
			return fmt.Errorf("verify generation %d: %w", g, err)
		}
	}
	return auditMissing(ctx, a, numbers, now)
}

// auditMissing looks for generations that were complete, are not removed because of a newer one, and have no document.
func auditMissing(ctx context.Context, a *audit.Audit, numbers []int64, now time.Time) error {
	choice, err := LoadChoice(ctx, a.Store)
	if errors.Is(err, ErrChoiceDamaged) {
		choice, err = &Choice{}, nil // found already
	}
	if err != nil {
		return err
	}
	named := maps.Clone(a.Canaries)
	maps.Copy(named, a.Generations)
	if choice.Pinned > 0 {
		named[choice.Pinned] = choiceKey
	}
	for _, g := range slices.Sorted(maps.Keys(named)) {
		if _, _, err := loadMarked(ctx, a.Store, g); err == nil {
			continue
		} else if !errors.Is(err, ErrNone) {
			return err
		}
		_, served := a.Generations[g]
		if removed, err := isFollowed(ctx, a.Store, choice, numbers, g, !served); err != nil {
			return err
		} else if removed && choice.Pinned != g {
			continue
		}
		for _, key := range a.Keys(Prefix(g)) {
			a.Claim(key)
		}
		reason := fmt.Errorf("it is missing, and %s names generation %d", named[g], g)
		if err := a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: docKey(g), What: reason.Error(),
			Lost: "this generation: the one before it serves, and the next build gives its number to other vectors",
			Do:   "Restore the object from a backup, or repair the store before a worker starts."},
			"mark the generation as damaged; the pipeline then builds one with a new number",
			func(ctx context.Context) error { return mark(ctx, a.Store, g, reason, now) }); err != nil {
			return err
		}
	}
	return nil
}

// isFollowed says whether there is a newer generation because of which Prune may have removed g, which may be a canary.
func isFollowed(ctx context.Context, store sink.Store, choice *Choice, numbers []int64, g int64, canary bool) (
	bool, error) {
	for _, n := range numbers {
		if n <= g {
			continue
		}
		doc, damage, err := loadMarked(ctx, store, n)
		switch {
		case errors.Is(err, ErrNone):
		case err != nil:
			return false, err
		case damage != nil || choice.isReady(doc) || choice.isWithdrawn(doc) || canary && choice.isCanary(doc):
			return true, nil
		}
	}
	return false, nil
}

func auditChoice(ctx context.Context, a *audit.Audit) error {
	a.Claim(choiceKey)
	a.Document(choiceKey, true)
	_, err := LoadChoice(ctx, a.Store)
	if !errors.Is(err, ErrChoiceDamaged) {
		return err
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Lost, Object: choiceKey, What: err.Error(),
		Lost: "which generations people have withdrawn or pinned",
		Do:   "Restore the object, or remove it and decide again: 'giantstream generations --help'."}, "", nil)
}

func auditFirst(ctx context.Context, a *audit.Audit) error {
	a.Claim(firstKey)
	_, err := loadFirst(ctx, a.Store)
	if err == nil {
		a.Document(firstKey, true)
		return nil
	}
	if !audit.IsDamage(err) {
		return err
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: firstKey, What: err.Error(),
		Lost: "the number of the first generation, if there is none yet",
		Do:   "If there is a generation, remove the object. Otherwise run 'giantstream remap' again on an empty store.",
	}, "", nil)
}

func auditOne(ctx context.Context, a *audit.Audit, g int64, now time.Time) error {
	doc, mark, err := loadMarked(ctx, a.Store, g)
	if errors.Is(err, ErrNone) {
		return nil // objects without a document are orphans, or of a build that is just beginning
	}
	if err != nil {
		return err
	}
	a.Claim(docKey(g))
	if doc == nil || mark != nil { // known already
		for _, key := range a.Keys(Prefix(g)) {
			a.Claim(key) // they go with the generation
		}
		return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: docKey(g), What: mark.Reason,
			Lost: "this generation: the one before it serves, and a build makes a new one",
			Do:   "Start the pipeline. It builds a new generation and removes this one."}, "", nil)
	}
	a.Document(docKey(g), doc.Format > 1)
	if !doc.Complete() {
		for _, key := range a.Keys(Prefix(g)) {
			a.Claim(key) // a build is under way
		}
		return nil
	}
	found := func(key string, damage error) error {
		return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: damage.Error(),
			Lost: fmt.Sprintf("generation %d: it is made again from the rows", g)},
			"mark the generation as damaged; the pipeline then serves the one before it and builds a new one",
			func(ctx context.Context) error {
				_, err := MarkDamaged(ctx, a.Store, g, damage, now)
				return err
			})
	}
	refs := slices.SortedFunc(doc.Refs, func(x, y sink.Ref) int { return strings.Compare(x.Key, y.Key) })
	for _, ref := range refs {
		damage, err := a.Verify(ctx, ref)
		if err == nil && damage != nil {
			err = found(ref.Key, damage)
		}
		if err != nil {
			return err
		}
	}
	if doc.Format > 1 {
		return nil
	}
	// The document names the Parquet parts alone. What it does not name is read.
	for _, key := range a.Keys(Prefix(g)) {
		a.Claim(key)
	}
	if _, err := Open(ctx, a.Store, doc, nil); errors.Is(err, ErrDamaged) {
		return found(docKey(g), err)
	} else if err != nil {
		return err
	}
	return nil
}
