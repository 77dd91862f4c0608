import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { parse } from 'yaml';
import { blocksOf } from '../../../tools/docs/markdown.ts';
import { root } from '../../../tools/suite/cli.ts';
import { type Declared, resolved } from '../subjects/subject.ts';

/** Returns the resources of one kind that the examples in the reference and in the manual declare. */
export const documentedExamples = (kind: string): ResolvedResource[] =>
  ['docs/module-kinds.md', 'docs/modules.md']
    .flatMap((page) => blocksOf(readFileSync(join(root, page), 'utf8')))
    .filter(({ language, source }) => language === 'yaml' && source.includes(`${kind}:`))
    .flatMap(({ source }) => {
      const example = parse(source) as { resource: Declared }[] | { resources: { resource: Declared }[] };
      return (Array.isArray(example) ? example : example.resources).map(({ resource }) => resource);
    })
    .filter((declared) => Object.keys(declared)[0] === kind)
    .map(resolved);
