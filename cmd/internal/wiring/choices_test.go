package wiring

import (
	"slices"
	"testing"

	"giantstream/config"
	"giantstream/featurize/pairs"
	"giantstream/featurize/pifa"
	"giantstream/featurize/tfidf"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/sampler"
)

// The configuration accepts what the packages below define, no more and no less.
func TestConfigurationListsAllChoices(t *testing.T) {
	var encoders []string
	for _, k := range fit.Kinds() {
		if k.Trained() {
			encoders = append(encoders, k.Name)
		}
	}
	var samplers []string
	for _, k := range sampler.Kinds {
		samplers = append(samplers, string(k))
	}
	for name, lists := range map[string][2][]string{
		"encoders":       {config.Encoders, encoders},
		"profiles":       {config.Profiles, tfidf.ProfileNames()},
		"weightings":     {config.Weightings, pifa.WeightingNames()},
		"label features": {config.LabelFeatures, pifa.KindNames()},
		"GPU maths":      {config.GPUMaths, compute.Maths()},
		"precisions":     {config.Precisions, bert.Precisions()},
		"samplers":       {config.Samplers, samplers},
		"measures":       {config.Measures, pairs.MeasureNames()},
		"quality gates":  {config.QualityGates, generation.Gates()},
	} {
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%s: config/choices.go has %q, the table %q", name, lists[0], lists[1])
		}
	}
}
