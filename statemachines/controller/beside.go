package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// What a job's plugins made beside it stands in status.controlledResources, so that it is found again, and goes when the job's pods are
// killed, whatever the plugins say by then.
//
//	plugin-svc = svc                             Volcano's entry of a plugin whose objects are made
//	celsius.dev/plugins = 3/1f0c2d3e             the generation of the job, and the digest of the plugins, of which they are
//	celsius.dev/made.v1.Secret.job-a-ssh = UID   an object
//	celsius.dev/made.v1.Secret.job-a-ssh = unknown   one that is about to be made, or was, by a controller that died with it
const (
	pluginKey  = "plugin-"
	pluginsKey = "celsius.dev/plugins"
	madeKey    = "celsius.dev/made."
)

// ofUnknown stands for the UID of an object that may not be read. It is written before the object is made, so that one that is there
// already is known for the job's own afterwards; it goes with the Job.
const ofUnknown = "unknown"

// lookAgain is the interval at which the controller looks again for objects that it does not watch.
const lookAgain = 15 * time.Second

// isBeside says whether an entry of controlledResources is about what plugins made.
func isBeside(key string) bool {
	return key == pluginsKey || strings.HasPrefix(key, madeKey) || strings.HasPrefix(key, pluginKey)
}

// madeEntry is the key of an object.
func madeEntry(m *jobplugin.Made) string { return madeKey + m.APIVersion + "." + m.Kind + "." + m.Name }

// madeObject is the object of an entry, as far as its deletion needs it; nil: it cannot be read.
func madeObject(namespace, key string) *unstructured.Unstructured {
	rest, _ := strings.CutPrefix(key, madeKey)
	for _, kind := range jobplugin.Kinds() {
		version, word, _ := strings.Cut(kind, " ")
		if name, ok := strings.CutPrefix(rest, version+"."+word+"."); ok {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion(version)
			u.SetKind(word)
			u.SetNamespace(namespace)
			u.SetName(name)
			return u
		}
	}
	return nil
}

// pluginsOf puts the plugins of a job to work, once a reconcile, or says what of the job they cannot work with.
func (r *jobs) pluginsOf(w *world) (*jobplugin.Run, *waiting) {
	if w.plugins == nil && len(w.job.Spec.Plugins) > 0 {
		run, err := r.options.JobPlugins.For(w.job)
		if err != nil {
			return nil, &waiting{pluginError, err.Error(), true}
		}
		w.plugins = run
	}
	return w.plugins, nil
}

// of is the entry that says of what the objects beside a job are.
func (b besides) of() string {
	return strconv.FormatInt(b.job.Generation, 10) + "/" + b.options.JobPlugins.Stamp(b.job)
}

// current says whether what plugins make beside a job is as the job's spec and the plugins want it.
func (b besides) current() bool {
	return len(b.job.Spec.Plugins) == 0 || b.job.Status.ControlledResources[pluginsKey] == b.of()
}

// besideIsVolcanos says whether Volcano made what is beside a job: that stays as it is until pods are made.
func besideIsVolcanos(job *batchv1alpha1.Job) bool {
	made := job.Status.ControlledResources
	for name := range job.Spec.Plugins {
		if made[pluginKey+name] == "" {
			return false
		}
	}
	return made[pluginsKey] == ""
}

// pluginsFailed says why a job waits whose plugins could not do their work: a row that fails does so until the job or the plugin changes.
func (w *world) pluginsFailed(err error) (*waiting, error) {
	wait := &waiting{pluginError, err.Error(), true}
	var row *jobplugin.RowError
	switch {
	case errors.As(err, &row):
		return wait, nil
	case errors.Is(err, errTaken):
		w.again = sooner(w.again, lookAgain)
		return wait, nil
	}
	return wait, err
}

// bring makes what plugins make beside a job, or brings it in line.
func (b besides) bring(ctx context.Context, run *jobplugin.Run) error {
	made, err := run.Objects()
	if err != nil {
		return err
	}
	fresh := map[string]string{}
	for _, m := range made {
		if key := madeEntry(m); m.Once() && b.job.Status.ControlledResources[key] == "" && !besideIsVolcanos(b.job) {
			fresh[key] = ofUnknown
		}
	}
	if len(fresh) > 0 {
		b.beside = b.besideNow()
		maps.Copy(b.beside, fresh)
		now := b.job.Status.State
		stays := transition{outcome: statemachines.Outcome{Phase: string(now.Phase)}, cause: cause{action: b.machine.Otherwise()}}
		if isWaiting(now.Reason) {
			stays.wait = &waiting{now.Reason, now.Message, false}
		}
		if err := b.write(ctx, b.world, stays); err != nil {
			return err
		}
	}
	return b.bringAll(ctx, run, made, fresh)
}

// besideNow is what the status says about what plugins made.
func (w *world) besideNow() map[string]string {
	entries := maps.Clone(w.job.Status.ControlledResources)
	maps.DeleteFunc(entries, func(key, _ string) bool { return !isBeside(key) })
	if entries == nil {
		entries = map[string]string{}
	}
	return entries
}

// besides cares for what plugins make beside one job.
type besides struct {
	*jobs
	*world
}

// bringAll makes these objects, or brings them in line. Fresh are the entries of those that may be made once, and were not tried yet.
func (b besides) bringAll(ctx context.Context, run *jobplugin.Run, made []*jobplugin.Made, fresh map[string]string) error {
	entries := map[string]string{}
	for _, m := range made {
		key := madeEntry(m)
		uid, err := b.bringOne(ctx, m, fresh[key] != "")
		if err == nil || !errors.Is(err, errTaken) {
			delete(fresh, key)
		}
		if err != nil { // what was made until then is known to be, and what was not tried is not
			b.beside = b.besideNow()
			maps.Copy(b.beside, entries)
			maps.DeleteFunc(b.beside, func(key, _ string) bool { return fresh[key] != "" })
			return err
		}
		entries[key] = string(uid)
	}
	entries[pluginsKey] = b.of()
	for _, name := range run.Plugins() {
		entries[pluginKey+name] = name
	}
	if err := b.delete(ctx, b.job.Status.ControlledResources, func(key string) bool { return entries[key] == "" }); err != nil {
		return err
	}
	b.beside = entries
	return nil
}

// errTaken says that a name is taken that an object needs, which may not be read: it is not known whose it is.
var errTaken = errors.New("is there already, and it cannot be seen whether it is the job's")

// bringOne makes an object, or brings the job's own of that name in line. Fresh is one that was never tried to be made.
func (b besides) bringOne(ctx context.Context, m *jobplugin.Made, fresh bool) (types.UID, error) {
	known := b.job.Status.ControlledResources[madeEntry(m)]
	if m.Once() {
		if known != "" && known != ofUnknown {
			return types.UID(known), nil
		}
		uid, err := b.makeOne(ctx, m)
		switch {
		case !apierrors.IsAlreadyExists(err):
			return uid, err
		case fresh:
			return "", fmt.Errorf("job plugin %s: the %s %s %w; delete it, or call the job something else", m.Plugin, m.Kind, m.Name, errTaken)
		}
		return ofUnknown, nil
	}
	if known == "" {
		if uid, err := b.makeOne(ctx, m); !apierrors.IsAlreadyExists(err) {
			return uid, err
		}
	}
	stored, err := b.read(ctx, m)
	if err != nil {
		return "", err
	}
	if stored == nil {
		if known == "" {
			return "", errBehind // it was there a moment ago
		}
		return b.makeOne(ctx, m)
	}
	return stored.GetUID(), b.update(ctx, m, stored)
}

// makeOne makes an object.
func (b besides) makeOne(ctx context.Context, m *jobplugin.Made) (types.UID, error) {
	object, err := m.Render()
	if err != nil {
		return "", err
	}
	if err := b.client.Create(ctx, object, client.FieldOwner(fieldManager)); err != nil {
		return "", fmt.Errorf("make %s %s: %w", m.Kind, m.Name, err)
	}
	return object.GetUID(), nil
}

// update brings an object in line, where it is not.
func (b besides) update(ctx context.Context, m *jobplugin.Made, stored *unstructured.Unstructured) error {
	wanted, err := m.Render()
	if err != nil {
		return err
	}
	next := stored.DeepCopy()
	next.Object = overlaid(stored.Object, wanted.Object)
	if typed.Same(stored.Object, next.Object) {
		return nil
	}
	if err := b.client.Patch(ctx, next, client.MergeFrom(stored), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("update %s %s: %w", m.Kind, m.Name, err)
	}
	return nil
}

// read reads an object; nil: there is none. One that is not the job's is an error: it is left alone.
func (b besides) read(ctx context.Context, m *jobplugin.Made) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(m.APIVersion)
	found.SetKind(m.Kind)
	err := b.live.Get(ctx, types.NamespacedName{Namespace: b.job.Namespace, Name: m.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", m.Kind, m.Name, err)
	case !metav1.IsControlledBy(found, b.job):
		return nil, fmt.Errorf("job plugin %s: the %s %s %w; delete it, or call the job something else", m.Plugin, m.Kind, m.Name, errForeign)
	}
	return found, nil
}

// overlaid is an object with all that another says: data, which nobody else has a part in, as a whole.
func overlaid(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		was, wasMap := out[key].(map[string]any)
		is, isMap := value.(map[string]any)
		if wasMap && isMap && key != "data" {
			value = overlaid(was, is)
		}
		out[key] = value
	}
	return out
}

// delete deletes what these entries say that plugins made beside a job, as far as which says so.
func (b besides) delete(ctx context.Context, made map[string]string, which func(key string) bool) error {
	for _, key := range slices.Sorted(maps.Keys(made)) {
		if !strings.HasPrefix(key, madeKey) || !which(key) {
			continue
		}
		object, uid := madeObject(b.job.Namespace, key), types.UID(made[key])
		if object == nil || uid == ofUnknown {
			continue
		}
		err := b.client.Delete(ctx, object, client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// clear deletes all that plugins made beside a job, whose pods are killed, but what Volcano made, or may not be read: that goes with the
// job, and is used again. It comes before the PodGroup is deleted.
func (b besides) clear(ctx context.Context) error {
	left := b.besideNow()
	if len(b.job.Spec.Plugins) > 0 && besideIsVolcanos(b.job) {
		return nil
	}
	if err := b.addUnwritten(ctx, left); err != nil || len(left) == 0 {
		return err
	}
	if err := b.delete(ctx, left, func(string) bool { return true }); err != nil {
		return err
	}
	maps.DeleteFunc(left, func(_, uid string) bool { return uid != ofUnknown })
	b.beside = left
	return nil
}

// addUnwritten adds what plugins made beside a job without its status saying so, as the controllers died in between. That is looked for
// as long as there is a PodGroup: nothing is made without one.
func (b besides) addUnwritten(ctx context.Context, to map[string]string) error {
	if b.group == nil || b.current() {
		return nil
	}
	run, wait := b.pluginsOf(b.world)
	if wait != nil {
		return nil // so nothing was made, either
	}
	made, err := run.Objects()
	if err != nil {
		return nil //nolint:nilerr // as before
	}
	for _, m := range made {
		if key := madeEntry(m); !m.Once() && to[key] == "" { // what is made once is written down before
			stored, err := b.read(ctx, m)
			if err != nil && !errors.Is(err, errForeign) {
				return err
			}
			if stored != nil {
				to[key] = string(stored.GetUID())
			}
		}
	}
	return nil
}

// enterBeside writes what plugins made into a status, where that changed.
func (w *world) enterBeside(s *batchv1alpha1.JobStatus) {
	if w.beside == nil {
		return
	}
	next := map[string]string{}
	for key, value := range s.ControlledResources {
		if !isBeside(key) {
			next[key] = value
		}
	}
	maps.Copy(next, w.beside)
	if s.ControlledResources = next; len(next) == 0 {
		s.ControlledResources = nil
	}
}
