import { parseModule } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { starters } from './starters.ts';

test.each(starters.filter(({ content }) => !content.startsWith('name: \n')))(
  'accepts the starter $label as a valid module',
  ({ content }) => {
    expect(parseModule(content)).toMatchObject({ ok: true, warnings: [] });
  },
);
