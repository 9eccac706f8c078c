package relations

import (
	"fmt"
	"math"
)

// Relation is a kind of link, and what its links weigh.
type Relation struct {
	// Kind is "" for links of none. Orders: the links are those of orders.
	Kind   string `json:"kind"`
	Orders bool   `json:"orders,omitempty"`
	// Links of the sample, Asked how many of them were held out and predicted: the latest, if Dated, else a share.
	Links int  `json:"links"`
	Asked int  `json:"asked"`
	Dated bool `json:"dated,omitempty"`
	// Weightless are those of the sample that state no weight above 0, and so are left out.
	Weightless int `json:"weightless,omitempty"`
	// Surplus is how much more surely than by chance these rank before random ones, 2·AUC − 1; Error is its
	// standard error.
	Surplus float64 `json:"surplus"`
	Error   float64 `json:"stderr"`
	// Weight of the relation: 1 is the best one's.
	Weight float64 `json:"weight"`
	// A link that states the weight w has Weight · Scale · w^Exponent.
	Exponent float64 `json:"exponent"`
	Scale    float64 `json:"scale"`
}

// WeightOf is the weight of a link that states w.
func (r Relation) WeightOf(w float32) float64 {
	if !(w > 0) {
		return 0
	}
	return r.Weight * r.Scale * power(w, r.Exponent)
}

// power is w^e for the exponents there are.
func power(w float32, e float64) float64 {
	switch e {
	case 0:
		return 1
	case 0.5:
		return math.Sqrt(float64(w))
	}
	return float64(w)
}

// Name is how people call the relation.
func (r Relation) Name() string {
	switch {
	case r.Orders:
		return "links from orders"
	case r.Kind == "":
		return "links without a kind"
	}
	return r.Kind
}

// IsWeightless reports whether there are links, and each states that it weighs nothing.
func (r Relation) IsWeightless() bool { return r.Links > 0 && r.Weightless == r.Links }

// Why says in a few words where the weight comes from.
func (r Relation) Why() string {
	switch {
	case r.IsWeightless():
		return "every link states the weight 0"
	case r.Asked == 0:
		return "the only relation"
	case r.Asked < leastAsked:
		return fmt.Sprintf("too few links to tell: %d were held out", r.Asked)
	}
	which := "a share that was held out"
	if r.Dated {
		which = "the latest"
	}
	said := fmt.Sprintf("texts predict %s with an AUC of %.3f ± %.3f", which, (1+r.Surplus)/2, r.Error/2)
	switch {
	case r.noise() && r.Weight > 0:
		return said + ", no better than chance, as for every relation"
	case r.noise():
		return said + ", no better than chance"
	}
	return said
}

// noise: the links are predicted no better than chance.
func (r Relation) noise() bool { return r.Surplus <= significant*r.Error }
