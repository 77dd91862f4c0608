/** Groups an agent's attributes by the part of their name before the first dot. */

export interface AttributeGroup {
  readonly name: string;
  readonly entries: readonly (readonly [name: string, value: string])[];
}

const general = 'machine';

/** @param search words, each of which must be in the name or the value */
export function attributeGroups(
  attributes: Readonly<Record<string, string>>,
  search: string,
): readonly AttributeGroup[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, [string, string][]>();
  for (const [name, value] of Object.entries(attributes)) {
    const text = `${name} ${value}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    const dot = name.indexOf('.');
    const group = dot > 0 ? name.slice(0, dot) : general;
    const entries = groups.get(group) ?? [];
    if (entries.length === 0) groups.set(group, entries);
    entries.push([name, value]);
  }
  return [...groups]
    .map(([name, entries]) => ({ name, entries: entries.sort(([a], [b]) => (a < b ? -1 : 1)) }))
    .sort((a, b) => Number(b.name === general) - Number(a.name === general) || (a.name < b.name ? -1 : 1));
}
