import { pointerKeys, type ResolvedResource } from '@muster/protocol/module';
import { missingProgram } from '../../host/processes/find-program.ts';
import type { Machine } from '../provider/provider.ts';
import { isAbsent, lookAtText, pathOf, type SeenText } from '../text-edit/text-file.ts';
import { restored, type ValueBefore, valueBefore } from './before.ts';
import { decode, parse, type StructuredFile, withoutSetting, withSetting } from './edit.ts';
import type { Syntax } from './syntax.ts';
import { declaredValue, locate, type Pointer, same, shownValue, type Value } from './value.ts';

export type StructuredType = 'json-unix' | 'yaml-unix' | 'toml-unix';
export type Structured = ResolvedResource<StructuredType>;

export interface SeenValue extends SeenText {
  /** The value for display; null if there is none. */
  found: string | null;
  isAsDeclared: boolean;
  /** Whether the file may contain a secret, which can be on the same line, or in the same value. */
  hasSecret: boolean;
  /** The file after the change. The journal does not store it, so it is null after the agent restarts. */
  after: string | null;
  /** The state to record before the change; null if nothing changes. */
  before: ValueBefore | null;
  /** The program that `validate` would run, if it is missing. */
  missingProgram?: string;
  /** For a removal, the removed and the restored value. Null if nothing has to be restored. */
  restored: { from: string | null; to: string | null } | null;
}

export const fileOf = (resource: Structured, syntax: Syntax): StructuredFile => ({ syntax, path: pathOf(resource) });
export const placeOf = ({ body }: Structured): Pointer => pointerKeys(body.pointer);

/** Returns the file as declared; null if it is already as declared. */
export function edited(
  resource: Structured,
  syntax: Syntax,
  content: Buffer,
): { found: Value | undefined; after: string | null; before: ValueBefore | null } {
  const file = fileOf(resource, syntax);
  const pointer = placeOf(resource);
  const tree = parse(file, decode(content, file.path));
  const place = locate(tree.value, pointer, file.path);
  const found = place.found ? place.value : undefined;
  const declared = declaredValue(resource.body.value);
  if (isAbsent(resource) ? !place.found : place.found && same(place.value, declared))
    return { found, after: null, before: null };
  const after = isAbsent(resource)
    ? { text: withoutSetting(file, tree, pointer), addedBlank: false }
    : withSetting(file, tree, pointer, place, declared);
  return { found, after: after.text, before: valueBefore(file, tree, pointer, place, after) };
}

export function look(
  resource: Structured,
  syntax: Syntax,
  machine: Pick<Machine, 'walk' | 'mayContainSecret'>,
): SeenValue {
  const seen = lookAtText(resource, machine);
  const { validate } = resource.body;
  const missing = validate == null || isAbsent(resource) ? null : missingProgram(validate);
  const { found, after, before } =
    seen.content === null ? { found: undefined, after: null, before: null } : edited(resource, syntax, seen.content);
  return {
    ...seen,
    found: found === undefined ? null : shownValue(found),
    hasSecret: machine.mayContainSecret(pathOf(resource)),
    isAsDeclared: seen.content === null ? isAbsent(resource) : after === null,
    after,
    before,
    ...(missing === null ? {} : { missingProgram: missing }),
    restored: null,
  };
}

export function lookForRemoval(
  resource: Structured,
  syntax: Syntax,
  before: ValueBefore,
  machine: Pick<Machine, 'walk' | 'mayContainSecret'>,
): SeenValue {
  const seen = lookAtText(resource, machine);
  const file = fileOf(resource, syntax);
  const back =
    seen.content === null ? null : restored(file, decode(seen.content, file.path), placeOf(resource), before);
  const shown = (value: Value): string | null => (value === null ? null : shownValue(value));
  return {
    ...seen,
    found: null,
    hasSecret: machine.mayContainSecret(pathOf(resource)),
    isAsDeclared: false,
    after: back?.text ?? null,
    before: null,
    restored: back === null ? null : { from: shown(back.from), to: shown(back.to) },
  };
}
