// Package labels has the stages of labels. SpreadTexts and Aggregate make the features of a label of the texts of its
// neighbours (PIFA); MakeFeatures makes those of an ablation. GrowTrunk makes the first cuts of the label tree,
// DealRows and DivideBranch make its branches, and MakeTree joins them, or renews the parent's tree.
package labels
