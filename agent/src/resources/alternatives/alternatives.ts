import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import {
  byName,
  type Choice,
  choose,
  groupFiles,
  isForeignLink,
  type LinkGroup,
  type Registration,
  readGroup,
  register,
  unregister,
} from '../../host/alternatives.ts';
import { HostFailure } from '../../host/failure.ts';
import { exists } from '../../host/read-system.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  restoring,
  withChanges,
} from '../provider/provider.ts';

export interface SeenAlternatives {
  /** Null if there is no such link group. */
  group: LinkGroup | null;
  /** Whether the file to register does not exist. */
  isMissing?: true;
  /** Paths of links that a change would create, but where something else exists; absent if there are none. */
  foreign?: string[];
}

/**
 * The choice before the first change. `registration` is how the candidate was registered, null if it was not, and
 * absent if no module has registered it.
 */
export type ChoiceBefore = Choice & {
  registration?: Registration | null;
  /** The link of the group, recorded with a registration, which may have been the group's only registration. */
  link?: string;
};

type Declared = ResolvedResource<'alternatives'>;

const isGroupName = (name: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,239}$/.test(name);
// A group without a valid name has no files; `check` refuses it.
const filesOf = ({ body }: Declared): string[] => (isGroupName(body.name) ? groupFiles(body.name) : []);

/**
 * The selected candidate of an update-alternatives link group. Records the previous choice so that removal can restore
 * it.
 */
export const alternatives = defineProvider<'alternatives', SeenAlternatives, ChoiceBefore>({
  type: 'alternatives',
  fields: { name: 'text', path: 'text', link: 'text?', priority: 'integer?', slaves: 'list?', ensure: 'text?' },
  path: (resource) => filesOf(resource)[0] ?? null,
  watched: filesOf,

  check({ body: { name, path, link, slaves } }) {
    if (!isGroupName(name)) throw new HostFailure(`${quoted(name)} is not the name of a link group`);
    if (!/^\/[^\n\r\0]+$/.test(path) || path.length > 4095)
      throw new HostFailure(`${quoted(path)} is not an absolute path of a candidate`);
    if (link != null && !isLinkPath(link)) throw new HostFailure(`${quoted(link)} is not an absolute path of a link`);
    for (const text of slaves ?? []) {
      const { link: slaveLink, name: slaveName, path: slavePath } = slaveOf(text);
      if (!isLinkPath(slaveLink) || !isGroupName(slaveName) || !isLinkPath(slavePath))
        throw new HostFailure(`${quoted(text)} is not a slave link: LINK NAME PATH`);
    }
  },

  async observe(resource, _circumstances, machine) {
    const { name, path, link, ensure } = resource.body;
    const group = await readGroup(name, machine);
    const foreign = linksOf(resource, group)
      .filter((each) => isForeignLink(each.link, each.name))
      .map((each) => each.link);
    const isMissing = link != null && ensure !== 'absent' && !exists(path);
    return { group, ...(isMissing ? { isMissing } : {}), ...(foreign.length === 0 ? {} : { foreign }) };
  },
  diff: diffAlternatives,

  async remember(resource, { group }, _difference, before) {
    const { name, path } = resource.body;
    const registers = declaredRegistration(resource) !== null && before?.registration === undefined;
    const link = group?.registered[path] === undefined ? {} : { link: group.link.path };
    const registration = registers ? { registration: group?.registered[path] ?? null, ...link } : {};
    if (before !== null) return { ...before, ...registration };
    const target = group?.target ?? null;
    if (target !== null && group?.candidates.includes(target) === false)
      throw new HostFailure(
        `the link group ${name} points to ${quoted(target)}, which is not one of its candidates, so the agent could not restore it later. Run update-alternatives --auto ${name} first`,
      );
    return group?.mode === 'manual' && target !== null
      ? { mode: 'manual', path: target, ...registration }
      : { mode: 'auto', ...registration };
  },

  async apply(resource, { group }, _difference, machine) {
    const { name, path, link } = resource.body;
    const wanted = declaredRegistration(resource);
    if (wanted !== null && link != null) {
      const found = group?.registered[path];
      if (!isRegisteredAs(found, wanted)) await registerInstead({ name, link, path }, found, wanted, machine);
    }
    await choose(name, declaredChoice(resource), machine);
    return {};
  },

  async observeForRemoval({ body: { name, path } }, { link }, machine) {
    const group = await readGroup(name, machine);
    const isForeign = group === null && link !== undefined && isForeignLink(link, name);
    return {
      group,
      ...(exists(path) ? {} : { isMissing: true as const }),
      ...(isForeign ? { foreign: [link] } : {}),
    };
  },
  diffRemoval: ({ body }, before, seen) => diffAlternativesRemoval(before, seen, body.path),

  async remove({ body: { name, path } }, before, seen, _difference, machine) {
    const { group } = seen;
    const found = group?.registered[path];
    const link = group?.link.path ?? before.link;
    const { registration } = before;
    if (comesBack(before, seen, path) && registration != null && link !== undefined)
      await register({ name, link, path }, registration, machine);
    else if (registration != null && link !== undefined && found !== undefined && !isRegisteredAs(found, registration))
      await registerInstead({ name, link, path }, found, registration, machine);
    else if (registration === null && found !== undefined) await unregister(name, path, machine);
    const candidates = [...(group?.candidates ?? []), ...(comesBack(before, seen, path) ? [path] : [])];
    const left = registration === null ? candidates.filter((each) => each !== path) : candidates;
    if (left.length > 0) await choose(name, restorable(before, { candidates: left }), machine);
    return {};
  },
});

/**
 * Replaces the registration of a candidate by removing it first, because the previous slave links would otherwise
 * remain. If this fails, restores the previous registration.
 */
async function registerInstead(
  candidate: { name: string; link: string; path: string },
  found: Registration | undefined,
  wanted: Registration,
  machine: Machine,
): Promise<void> {
  if (found !== undefined) await unregister(candidate.name, candidate.path, machine);
  try {
    await register(candidate, wanted, machine);
  } catch (error) {
    if (found !== undefined) await register(candidate, found, machine);
    throw error;
  }
}

/**
 * Reports whether a removal must register a candidate again, for example because the agent was killed while it replaced
 * the registration. If the candidate's file is missing, its package was removed too, so the candidate is not
 * registered.
 */
const comesBack = ({ registration }: ChoiceBefore, { group, isMissing }: SeenAlternatives, path: string): boolean =>
  registration != null && isMissing !== true && group?.registered[path] === undefined;

const isLinkPath = (path: string): boolean => /^\/[^\s\0]+$/.test(path) && path.length <= 4095;

function slaveOf(text: string): Registration['slaves'][number] {
  const [link = '', name = '', path = ''] = text.split(' ');
  return { link, name, path };
}

const defaultPriority = 50;

/** Returns how the resource registers its candidate; null if it only chooses one. */
const declaredRegistration = ({ body: { link, priority, slaves, ensure } }: Declared): Registration | null =>
  link == null || ensure === 'absent'
    ? null
    : { priority: priority ?? defaultPriority, slaves: byName((slaves ?? []).map(slaveOf)) };

/** Returns the links that update-alternatives creates for the declared choice, without the link of an existing group. */
function linksOf(resource: Declared, group: LinkGroup | null): { link: string; name: string }[] {
  const { name, path, link, ensure } = resource.body;
  const wanted = declaredRegistration(resource);
  const own = group === null && wanted !== null && link != null ? [{ link, name }] : [];
  const chosen = ensure === 'absent' ? group?.best : path;
  const registered = wanted ?? (chosen == null ? undefined : group?.registered[chosen]);
  // update-alternatives creates no slave link to a missing file.
  return [...own, ...(registered?.slaves ?? []).filter((slave) => exists(slave.path))];
}

const isRegisteredAs = (found: Registration | undefined, wanted: Registration | null): boolean =>
  found === undefined || wanted === null
    ? found === undefined && wanted === null
    : registrationText(found) === registrationText(wanted);

const registrationText = ({ priority, slaves }: Registration): string =>
  [`priority ${priority}`, ...slaves.map(({ link, name, path }) => `${link} ${name} ${path}`)].join(', ');

/** Returns the group as it would be without a candidate, in automatic mode if that candidate was selected. */
function withoutCandidate(group: LinkGroup, path: string): LinkGroup {
  const candidates = group.candidates.filter((candidate) => candidate !== path);
  const priorityOf = (candidate: string): number => group.registered[candidate]?.priority ?? 0;
  const best = candidates.reduce<string | null>(
    (found, candidate) => (found === null || priorityOf(candidate) > priorityOf(found) ? candidate : found),
    null,
  );
  const isChosen = group.target === path;
  return { ...group, candidates, best, ...(isChosen ? { target: best, mode: 'auto', brokenSlaves: [] } : {}) };
}

const declaredChoice = ({ body: { path, ensure } }: Declared): Choice =>
  ensure === 'absent' ? { mode: 'auto' } : { mode: 'manual', path };

/** Returns the earlier choice, or the automatic mode if the chosen path is no longer a candidate. */
const restorable = (before: Choice, { candidates }: Pick<LinkGroup, 'candidates'>): Choice =>
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

/** @throws HostFailure if a change would replace another file at the path of a link */
export function diffAlternatives(
  resource: Declared,
  seen: SeenAlternatives,
  { purpose }: Partial<Pick<Circumstances, 'purpose'>> = {},
): Difference {
  const difference = diffChoice(resource, seen);
  if (difference.changes.length === 0 || seen.foreign === undefined || purpose === 'drift') return difference;
  throw new HostFailure(
    `${some(seen.foreign)}: not a link of the group ${resource.body.name} but another file or link, which the agent does not replace, because it could not restore it; remove it, or declare another path`,
  );
}

function diffChoice(resource: Declared, { group, isMissing }: SeenAlternatives): Difference {
  const { name, path, link, ensure } = resource.body;
  if (ensure === 'absent') {
    const changes = group === null ? [] : changesTo(declaredChoice(resource), group);
    return withChanges('remove', changes);
  }
  const wanted = declaredRegistration(resource);
  if (wanted !== null && link != null) return diffRegistered(resource, link, wanted, group, isMissing === true);
  if (group === null) {
    const message = `there is no link group ${name} on this machine; check the name, or install the package that registers the group`;
    const changes = [
      { field: 'path', from: null, to: path },
      { field: 'mode', from: null, to: 'manual' },
    ];
    return withChanges('update', changes, { awaits: [{ kind: 'programs', message }] });
  }
  const changes = changesTo(declaredChoice(resource), group);
  if (group.link.state === 'other file') {
    const message = `${quoted(group.link.path)} is not the link of the group ${name} but another file, which update-alternatives does not replace; remove it`;
    const replaced = { field: 'link', from: 'another file', to: group.link.path };
    return withChanges('update', [...changes, replaced], { awaits: [{ kind: 'programs', message }] });
  }
  if (group.candidates.includes(path)) return withChanges('update', changes);
  const message = `${quoted(path)} is not a candidate of the link group ${name}; its candidates are ${some(group.candidates) || 'none'}`;
  return withChanges('update', changes, { awaits: [{ kind: 'programs', message }] });
}

/** Decides what to do for a resource that registers its candidate. */
function diffRegistered(
  { body: { name, path } }: Declared,
  link: string,
  wanted: Registration,
  group: LinkGroup | null,
  isMissing: boolean,
): Difference {
  const found = group?.registered[path];
  const isSame = isRegisteredAs(found, wanted);
  const registered: FieldChange[] = isSame
    ? []
    : [
        {
          field: 'registered',
          from: found === undefined ? null : registrationText(found),
          to: registrationText(wanted),
        },
      ];
  const message = `${quoted(path)} does not exist, so it cannot be registered in ${name}`;
  const more = { awaits: [isMissing ? { kind: 'programs' as const, message } : null] };
  if (group === null) {
    const changes = [
      ...registered,
      { field: 'path', from: null, to: path },
      { field: 'mode', from: null, to: 'manual' },
      { field: 'link', from: null, to: link },
    ];
    return withChanges('create', changes, more);
  }
  if (group.link.path !== link)
    throw new HostFailure(
      `the link group ${name} has the link ${group.link.path}, which is not moved to ${link}; declare it as \`link\`, or choose another name`,
    );
  if (group.link.state === 'other file')
    throw new HostFailure(
      `${quoted(link)} is not the link of the group ${name} but another file, which update-alternatives does not replace; remove it`,
    );
  const changes = [...registered, ...changesTo({ mode: 'manual', path }, group)];
  return withChanges('update', changes, more);
}

/** @throws HostFailure if another file exists at the path of the group link to restore */
export function diffAlternativesRemoval(before: ChoiceBefore, seen: SeenAlternatives, path = ''): Difference {
  const { group: found, foreign } = seen;
  const { registration } = before;
  const isBack = comesBack(before, seen, path);
  if (found === null) {
    if (!isBack || registration == null || before.link === undefined) return nothing('the link group no longer exists');
    if (foreign !== undefined)
      throw new HostFailure(`${some(foreign)} is occupied, so the link group is not restored; remove it`);
    return restoring([{ field: 'registered', from: null, to: registrationText(registration) }]);
  }
  const registered: FieldChange[] =
    registration === undefined ||
    isRegisteredAs(found.registered[path], registration) ||
    (registration !== null && found.registered[path] === undefined && !isBack)
      ? []
      : [
          {
            field: 'registered',
            from: found.registered[path] === undefined ? null : registrationText(found.registered[path]),
            to: registration === null ? null : registrationText(registration),
          },
        ];
  const group =
    registration === null
      ? withoutCandidate(found, path)
      : { ...found, candidates: [...found.candidates, ...(isBack ? [path] : [])] };
  if (group.candidates.length === 0 && registered.length > 0) return restoring(registered);
  const choice = restorable(before, group);
  const changes = [...registered, ...changesTo(choice, { ...group, mode: found.mode, target: found.target })];
  const isSameMode = changes.length === 0 || before.mode === choice.mode;
  return restoring(
    changes,
    isSameMode ? null : 'the earlier choice is no longer a candidate, so update-alternatives chooses by priority',
  );
}

/** Lists strings in a message: at most 10, of at most 200 characters each. */
const some = (texts: readonly string[]): string =>
  [...texts.slice(0, 10).map(shortened), ...(texts.length > 10 ? [`${texts.length - 10} more`] : [])].join(', ');
const shortened = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
const quoted = (text: string): string => JSON.stringify(shortened(text));
