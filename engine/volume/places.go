package volume

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Places states for each claim of a task that is bound to a volume which not every node reaches: the claim, the volume, and the zone or the
// nodes of the volume. It is "" if there is no such claim, or if some claim has no volume yet. It is also "" if another property of the
// claims keeps the task off all nodes. A node in that place would not help then.
func (v *Volumes) Places(t *model.Task) string {
	if trouble, err := v.Trouble(t); trouble != "" || err != nil {
		return ""
	}
	var out []string
	for _, key := range t.Claims {
		claim, ok := v.c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: key}].(*corev1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName == "" {
			return ""
		}
		pv, ok := v.c.Storage.Objects[model.StorageID{Kind: model.PersistentVolume, Key: claim.Spec.VolumeName}].(*corev1.PersistentVolume)
		if !ok {
			continue
		}
		if where := placeOf(pv); where != "" {
			out = append(out, "claim "+claim.Name+" is bound to volume "+pv.Name+" "+where)
		}
	}
	return strings.Join(out, ", and ")
}

// Defect looks for the first claim of a task that exists, but that no node can use. It states why that is so, and what a user can do. It is
// "" if there is no such claim.
func (v *Volumes) Defect(t *model.Task) string {
	for _, key := range t.Claims {
		claim, ok := v.c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: key}].(*corev1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		volume := claim.Spec.VolumeName
		switch {
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("claim %s is being deleted; create it again once it is gone, or use another claim", claim.Name)
		case claim.Status.Phase == corev1.ClaimLost:
			return fmt.Sprintf("claim %s is Lost: its volume %s does not exist any more, or is bound to another claim; restore the volume, delete "+
				"the claim and create it again, or use another claim", claim.Name, volume)
		case volume != "" && v.c.Storage.Objects[model.StorageID{Kind: model.PersistentVolume, Key: volume}] == nil:
			return fmt.Sprintf("claim %s is bound to volume %s, which does not exist; restore the volume, delete the claim and create it again, or "+
				"use another claim", claim.Name, volume)
		}
	}
	return ""
}

// placeOf states which nodes reach a volume, by its node affinity or the zone in its labels; "" if all do.
func placeOf(pv *corev1.PersistentVolume) string {
	var terms []string
	if pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
		for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
			if text := termText(term); text != "" && !slices.Contains(terms, text) {
				terms = append(terms, text)
			}
		}
	}
	if len(terms) > 0 {
		return strings.Join(terms, " or ")
	}
	for _, key := range []string{
		corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion,
	} {
		if value := pv.Labels[key]; value != "" {
			return topologyText(key, corev1.NodeSelectorOpIn, strings.Split(value, "__")) // Kubernetes joins several zones with "__"
		}
	}
	return ""
}

func termText(term corev1.NodeSelectorTerm) string {
	var parts []string
	for _, list := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
		for _, r := range list {
			parts = append(parts, topologyText(r.Key, r.Operator, r.Values))
		}
	}
	return strings.Join(parts, " and ")
}

// topologyText names a zone, a region or a node by its usual name, and writes any other requirement as it is.
func topologyText(key string, operator corev1.NodeSelectorOperator, values []string) string {
	const most = 5
	list := strings.Join(values[:min(len(values), most)], ", ")
	if len(values) > most {
		list += ", …"
	}
	if operator != corev1.NodeSelectorOpIn {
		return strings.TrimSpace("on nodes with " + key + " " + string(operator) + " " + list)
	}
	word := "on nodes with " + key + " "
	switch {
	case key == corev1.LabelHostname || key == "metadata.name":
		word = "on node "
	case strings.HasSuffix(key, "/zone"):
		word = "in zone "
	case strings.HasSuffix(key, "/region"):
		word = "in region "
	}
	return word + list
}
