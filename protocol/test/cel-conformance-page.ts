import type { ConformanceCase } from './cel-conformance.ts';
import { reasonOf } from './cel-conformance-reasons.ts';

const code = (text: string): string => `\`${text.replaceAll('`', "'")}\``;

/** Returns the list of the test cases of a section that do not pass, by reason. */
function section([name, cases]: [string, ConformanceCase[]]): string[] {
  const failed = cases.filter(({ passes }) => !passes);
  if (failed.length === 0) return [];
  const namesIn = (of: readonly ConformanceCase[]): string =>
    [...Map.groupBy(of, ({ group }) => group)]
      .map(([group, inGroup]) => `${code(group)}: ${inGroup.map((one) => code(one.name)).join(', ')}`)
      .join('; ');
  const byReason = Map.groupBy(failed, (one) => reasonOf(one) ?? 'no known reason');
  return [`### ${name}`, [...byReason].map(([reason, of]) => `- **${reason}** — ${namesIn(of)}`).join('\n')];
}

/** Returns the page that lists the test cases of the CEL conformance suite that expressions do not pass. */
export function conformancePage(cases: readonly ConformanceCase[]): string {
  const sections = [...Map.groupBy(cases, (one) => one.section)];
  const rows = sections.map(([name, of]) => {
    const passed = of.filter(({ passes }) => passes).length;
    return `| ${name} | ${passed} of ${of.length} |`;
  });
  const failed = cases.filter(({ passes }) => !passes);
  const counts = [...Map.groupBy(failed, reasonOf)].sort(([, one], [, other]) => other.length - one.length);
  return `${[
    '# Conformance of expressions to CEL',
    `The [conformance suite](https://github.com/google/cel-spec/tree/master/tests/simple) of the Common Expression Language has
${cases.length} cases. The [expressions](expressions.md) of modules pass ${cases.length - failed.length} of them. The tests run the suite and compare this page with the
results.`,
    ['| section | passes |', '|---|---|', ...rows].join('\n'),
    '## Why cases do not pass',
    ['| reason | cases |', '|---|---|', ...counts.map(([reason, of]) => `| ${reason} | ${of.length} |`)].join('\n'),
    '## Cases that do not pass',
    ...sections.flatMap(section),
  ].join('\n\n')}\n`;
}
