import { isMapping } from '@muster/protocol';
import { getSettings, type Settings } from '@muster/protocol/http';
import { settingAmount } from '../../../../client/src/setting-amount.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { CliError, exits } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';

export const register: Register = (command, act) => {
  command
    .command('show')
    .description('Show the effective configuration and the source of each value')
    .argument('[keys...]', 'Only these keys; drift means all of drift.…')
    .option('--changed', 'Only values that differ from the default')
    .addHelpText('after', '\nExamples:\n  $ muster settings show --changed\n  $ muster settings show drift')
    .action(act(show));
};

interface Row {
  readonly key: string;
  readonly value: unknown;
  readonly source: string;
}

/** Returns every setting by its dotted key, as in `sources`. */
export function flatten({ settings, sources }: Settings): Row[] {
  const rows: Row[] = [];
  const add = (value: unknown, key: string) => {
    const source = Object.hasOwn(sources, key) ? sources[key] : undefined;
    const inside = isMapping(value) ? Object.entries(value) : [];
    if (source === undefined && inside.length > 0) for (const [name, below] of inside) add(below, `${key}.${name}`);
    else rows.push({ key, value, source: source ?? '-' });
  };
  for (const [key, value] of Object.entries(settings)) add(value, key);
  return rows;
}

const shown = (value: unknown): string | null =>
  value === null || value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value);

const withAmount = (text: string | null, amount: string | null): string | null =>
  amount === null ? text : `${text} (${amount})`;

async function show(context: Context, keys: string[], options: { changed?: boolean }): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const found = await call(getSettings, {});
  if (out.json && keys.length === 0 && !options.changed) return out.data(found);
  const all = flatten(found);
  const isBelow = (key: string, prefix: string) => key === prefix || key.startsWith(`${prefix}.`);
  for (const prefix of keys)
    if (!all.some(({ key }) => isBelow(key, prefix))) {
      const near = nearest(
        prefix,
        all.map(({ key }) => key),
      );
      throw new CliError(
        exits.failed,
        'setting_not_found',
        `there is no setting ${JSON.stringify(prefix)}`,
        `${near === null ? '' : `Did you mean ${near}? `}List the settings: muster settings show`,
      );
    }
  const rows = all.filter(
    ({ key, source }) =>
      (keys.length === 0 || keys.some((prefix) => isBelow(key, prefix))) && (!options.changed || source !== 'default'),
  );
  if (out.json)
    return out.data({
      settings: Object.fromEntries(rows.map(({ key, value }) => [key, value])),
      sources: Object.fromEntries(rows.map(({ key, source }) => [key, source])),
    });
  if (rows.length === 0) return out.note('Every setting has its default value.');
  // Omits human-readable amounts in a pipe, because programs may parse the output.
  const isPiped = out.style.width === null;
  out.table<Row>(
    [
      { heading: 'KEY', text: ({ key }) => key, flexible: true },
      {
        heading: 'VALUE',
        text: ({ key, value }) => withAmount(shown(value), isPiped ? null : settingAmount(key, value)),
        flexible: true,
        paint: (text, { source }, { color }) => (source === 'default' ? text : color.bold(text)),
      },
      {
        heading: 'FROM',
        text: ({ source }) => source,
        paint: (text, { source }, { color }) => (source === 'default' ? color.dim(text) : text),
      },
    ],
    rows,
  );
}
