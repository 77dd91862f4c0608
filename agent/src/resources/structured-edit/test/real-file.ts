import { pointer as pointerText } from '@muster/protocol/module';
import { hasSection, settingsIn, withSetting as withIniSetting } from '../../ini-unix/ini.ts';
import { joinText, splitText } from '../../text-edit/lines.ts';
import { restored, valueBefore } from '../before.ts';
import { parse, type StructuredFile, withSetting } from '../edit.ts';
import { json } from '../json.ts';
import type { Syntax } from '../syntax.ts';
import { toml } from '../toml.ts';
import { locate, type Pointer, type Value } from '../value.ts';
import { yaml } from '../yaml.ts';

export type SyntaxName = 'ini' | 'json' | 'yaml' | 'toml';

const syntaxes = { json, yaml, toml } as unknown as Record<Exclude<SyntaxName, 'ini'>, Syntax>;

/** The effect of changing one value in a real file. */
export type Trial =
  | { readonly is: 'changed'; readonly at: string }
  /** The file has no value on a single line, or is not valid in its syntax. */
  | { readonly is: 'skipped'; readonly why: string }
  | { readonly is: 'wrong'; readonly at: string; readonly why: string };

function* leaves(value: Value, at: Pointer = []): Generator<Pointer> {
  if (value instanceof Map) for (const [key, item] of value) yield* leaves(item, [...at, key]);
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* leaves(item, [...at, String(index)]);
  else if (value !== null && at.length > 0) yield at;
}

const another = (value: Value): Value =>
  typeof value === 'number'
    ? value + 1
    : typeof value === 'boolean'
      ? !value
      : `changed: ${String(value).slice(0, 20)}`;

/** Returns a description of the fault, or null if exactly one line differs. */
function faultOf(before: string, after: string): string | null {
  const [old, now] = [before.split('\n'), after.split('\n')];
  if (old.length !== now.length) return `the file had ${old.length} lines, and has ${now.length}`;
  const differing = old.flatMap((line, index) => (line === now[index] ? [] : [index + 1]));
  return differing.length === 1 ? null : `lines ${differing.slice(0, 10).join(', ')} differ`;
}

/**
 * Changes one value in a file, and checks that only its line differs and that the previous value can be restored.
 * @param random a number in [0, 1) that selects the value
 */
export function changeOneValue(name: SyntaxName, path: string, text: string, random: number): Trial {
  return name === 'ini' ? changeIni(text, random) : changeStructured(syntaxes[name], path, text, random);
}

function changeStructured(syntax: Syntax, path: string, text: string, random: number): Trial {
  const file: StructuredFile = { syntax, path };
  let tree: ReturnType<typeof parse>;
  try {
    tree = parse(file, text);
  } catch (error) {
    return { is: 'skipped', why: (error as Error).message };
  }
  const isOnOneLine = (pointer: Pointer): boolean => {
    try {
      const found = syntax.find(tree, pointer);
      return found !== null && !text.slice(found.value.start, found.value.end).includes('\n');
    } catch {
      return false;
    }
  };
  const pointers = [...leaves(tree.value)];
  const first = Math.floor(random * pointers.length);
  const pointer = [...pointers.slice(first), ...pointers.slice(0, first)].find(isOnOneLine);
  if (pointer === undefined) return { is: 'skipped', why: 'it has no value on a single line' };
  const at = pointerText(pointer);
  try {
    const place = locate(tree.value, pointer, path);
    const after = withSetting(file, tree, pointer, place, another(place.found ? place.value : null));
    const before = valueBefore(file, tree, pointer, place, after);
    const why = faultOf(text, after.text);
    if (why !== null) return { is: 'wrong', at, why };
    const back = restored(file, after.text, pointer, before);
    return back?.text === text ? { is: 'changed', at } : { is: 'wrong', at, why: 'the restored file differs' };
  } catch (error) {
    return { is: 'wrong', at, why: (error as Error).message };
  }
}

function changeIni(text: string, random: number): Trial {
  const lines = splitText(text);
  let section: string | null = null;
  const places = lines.flatMap(({ text: line }) => {
    const header = /^\[([^\]]+)\]\s*$/.exec(line);
    if (header !== null) section = header[1] as string;
    const key = /^([A-Za-z][\w.-]*) *= *\S/.exec(line)?.[1];
    return key === undefined ? [] : [{ section, key }];
  });
  const single = places.filter((place) => {
    const found = settingsIn(lines, place);
    return hasSection(lines, place) && found.length === 1 && found[0]?.continues === false;
  });
  const place = single[Math.floor(random * single.length)];
  if (place === undefined) return { is: 'skipped', why: 'it has no setting that occurs only once' };
  const at = `[${place.section ?? ''}] ${place.key}`;
  const why = faultOf(text, joinText(withIniSetting(lines, place, 'changed')));
  return why === null ? { is: 'changed', at } : { is: 'wrong', at, why };
}
