// Package vocabulary has the stages of texts. Count and Merge count n-grams, FitVectorizer chooses the features among
// them, FitProjection fits the projection to a sample, and Vectorise makes both of each text. Later stages read them
// through EachCounts and OpenProjected.
package vocabulary
