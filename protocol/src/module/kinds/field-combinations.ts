import type { CombinationFault, Kind } from './kind.ts';

type Given = Readonly<Record<string, unknown>>;

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

const isExpression = (value: unknown): boolean => typeof value === 'string' && value.includes('${{');

/**
 * Reports whether a value has an expression that may yield `omit`. Only its result determines whether the field is set.
 */
const mayBeOmitted = (value: unknown): boolean => typeof value === 'string' && /\$\{\{.*\bomit\b/s.test(value);

/**
 * Checks which fields a declared body combines. Skips fields whose expression may omit them.
 * @param given the fields with their declared values, and `template` if the body has one
 */
export function declaredCombinationFaults(kind: Kind, given: Given): CombinationFault[] {
  const certain = Object.fromEntries(Object.entries(given).filter(([, value]) => !mayBeOmitted(value)));
  return [
    ...exclusiveFaults(kind, (name) => Object.hasOwn(certain, name)),
    ...missingFaults(kind, {
      isGiven: (name) => isGiven(certain[name]),
      isMissing: (name) => !isGiven(given[name]),
      isNull: (name) => given[name] === undefined || given[name] === null,
      ensure: given.ensure,
    }),
    ...kind.faults(given),
  ];
}

/** Checks which fields an evaluated body combines. */
export function combinationFaults(kind: Kind, body: Given): CombinationFault[] {
  const isNull = (name: string) => body[name] === undefined || body[name] === null;
  return [
    ...exclusiveFaults(kind, (name) => !isNull(name)),
    ...missingFaults(kind, {
      isGiven: (name) => isGiven(body[name]),
      isMissing: (name) => !isGiven(body[name]),
      isNull,
      ensure: body.ensure,
    }),
    ...kind.faults(body),
  ];
}

function exclusiveFaults({ exclusive }: Kind, has: (name: string) => boolean): CombinationFault[] {
  const faults: CombinationFault[] = [];
  for (const group of exclusive) {
    let first: string | undefined;
    for (const name of group) {
      if (!has(name)) continue;
      if (first === undefined) first = name;
      else faults.push({ path: [name], message: `cannot be combined with ${first}; keep only one` });
    }
  }
  return faults;
}

interface Presence {
  isGiven(name: string): boolean;
  isMissing(name: string): boolean;
  isNull(name: string): boolean;
  ensure: unknown;
}

function missingFaults({ needs, presentNeeds, oneOf }: Kind, presence: Presence): CombinationFault[] {
  const { isGiven, isMissing, isNull, ensure } = presence;
  const faults: CombinationFault[] = [];
  for (const name in needs) {
    if (!isGiven(name)) continue;
    const oneOfThem = [needs[name] ?? []].flat();
    if (oneOfThem.every(isMissing))
      faults.push({ path: [name], message: `requires ${oneOfThem.join(' or ')}: add it` });
  }
  if (ensure === undefined || ensure === null || ensure === 'present')
    for (const name of presentNeeds)
      if (isNull(name)) faults.push({ path: [], message: `requires ${name}, unless it has ensure: absent` });
  for (const group of oneOf)
    if (ensure !== 'absent' && !isExpression(ensure) && group.every(isMissing))
      faults.push({ path: [], message: `one of ${group.join(', ')} is required: add it` });
  return faults;
}
