import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { type Choice, choose, groupFiles, type LinkGroup, readGroup } from '../../host/alternatives.ts';
import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, nothing } from '../provider/provider.ts';

/** Null if there is no such link group. */
export type SeenAlternatives = LinkGroup | null;

type Declared = ResolvedResource<'alternatives'>;

const isGroupName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,239}$/.test(name);
// A group without a valid name has no files; `check` refuses it.
const filesOf = ({ body }: Declared): string[] => (isGroupName(body.name) ? groupFiles(body.name) : []);

/**
 * The selected candidate of an update-alternatives link group. Records the previous choice so that removal can restore
 * it.
 */
export const alternatives = defineProvider<'alternatives', SeenAlternatives, Choice>({
  type: 'alternatives',
  fields: { name: 'text', path: 'text', ensure: 'text?' },
  path: (resource) => filesOf(resource)[0] ?? null,
  watched: filesOf,

  check({ body: { name, path } }) {
    if (!isGroupName(name)) throw new HostFailure(`${quoted(name)} is not the name of a link group`);
    if (!/^\/[^\n\r\0]+$/.test(path) || path.length > 4095)
      throw new HostFailure(`${quoted(path)} is not an absolute path of a candidate`);
  },

  observe: ({ body }, _circumstances, machine) => readGroup(body.name, machine),
  diff: diffAlternatives,

  async remember({ body: { name } }, group, _difference, before) {
    if (before !== null) return before;
    const target = group?.target ?? null;
    if (target !== null && group?.candidates.includes(target) === false)
      throw new HostFailure(
        `the link group ${name} points to ${quoted(target)}, which is not one of its candidates, so the agent could not restore it later. Run update-alternatives --auto ${name} first`,
      );
    return group?.mode === 'manual' && target !== null ? { mode: 'manual', path: target } : { mode: 'auto' };
  },

  async apply(resource, _group, _difference, machine) {
    await choose(resource.body.name, declaredChoice(resource), machine);
    return {};
  },

  observeForRemoval: ({ body }, _before, machine) => readGroup(body.name, machine),
  diffRemoval: (_resource, before, group) => diffAlternativesRemoval(before, group),

  async remove({ body }, before, group, _difference, machine) {
    if (group !== null) await choose(body.name, restorable(before, group), machine);
    return {};
  },
});

const declaredChoice = ({ body: { path, ensure } }: Declared): Choice =>
  ensure === 'absent' ? { mode: 'auto' } : { mode: 'manual', path };

/** Returns the earlier choice, or the automatic mode if the chosen path is no longer a candidate. */
const restorable = (before: Choice, { candidates }: LinkGroup): Choice =>
  before.mode === 'auto' || candidates.includes(before.path) ? before : { mode: 'auto' };

function changesTo(choice: Choice, { mode, target, best, brokenSlaves, link }: LinkGroup): FieldChange[] {
  const path = choice.mode === 'auto' ? best : choice.path;
  const changes: FieldChange[] = [];
  if (target !== path) changes.push({ field: 'path', from: target, to: path });
  else if (brokenSlaves.length > 0)
    changes.push({ field: 'slaves', from: `broken: ${some(brokenSlaves)}`, to: 'linked' });
  if (link.state === 'missing' && path !== null) changes.push({ field: 'link', from: null, to: link.path });
  if (mode !== choice.mode) changes.push({ field: 'mode', from: mode, to: choice.mode });
  return changes;
}

export function diffAlternatives(resource: Declared, group: SeenAlternatives): Difference {
  const { name, path, ensure } = resource.body;
  if (ensure === 'absent') {
    const changes = group === null ? [] : changesTo(declaredChoice(resource), group);
    return changes.length === 0 ? nothing() : { action: 'remove', changes, diff: null };
  }
  if (group === null) {
    const message = `there is no link group ${name} on this machine; check the name, or install the package that registers the group`;
    const changes = [
      { field: 'path', from: null, to: path },
      { field: 'mode', from: null, to: 'manual' },
    ];
    return { action: 'update', changes, diff: null, awaits: [{ kind: 'programs', message }] };
  }
  const changes = changesTo(declaredChoice(resource), group);
  if (group.link.state === 'other file') {
    const foreign = `${quoted(group.link.path)} is not the link of the group ${name} but another file, which update-alternatives does not replace; remove it`;
    const replaced = { field: 'link', from: 'another file', to: group.link.path };
    return {
      action: 'update',
      changes: [...changes, replaced],
      diff: null,
      awaits: [{ kind: 'programs', message: foreign }],
    };
  }
  if (changes.length === 0) return nothing();
  if (group.candidates.includes(path)) return { action: 'update', changes, diff: null };
  const message = `${quoted(path)} is not a candidate of the link group ${name}; its candidates are ${some(group.candidates) || 'none'}`;
  return { action: 'update', changes, diff: null, awaits: [{ kind: 'programs', message }] };
}

export function diffAlternativesRemoval(before: Choice, group: SeenAlternatives): Difference {
  if (group === null) return nothing('the link group no longer exists');
  const choice = restorable(before, group);
  const changes = changesTo(choice, group);
  if (changes.length === 0) return nothing('already in its original state');
  const message =
    before.mode === choice.mode
      ? 'restores the original state'
      : 'the earlier choice is no longer a candidate, so update-alternatives chooses by priority';
  return { action: 'remove', changes, diff: null, message };
}

/** Lists strings in a message: at most 10, of at most 200 characters each. */
const some = (texts: readonly string[]): string =>
  [...texts.slice(0, 10).map(shortened), ...(texts.length > 10 ? [`${texts.length - 10} more`] : [])].join(', ');
const shortened = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
const quoted = (text: string): string => JSON.stringify(shortened(text));
