import { type AgentValue, getAgent, listValues } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../../test/fake-api.ts';
import { renderPart } from '../../../../test/render.tsx';
import { ValuesTab } from './values-tab.tsx';

const agent = getAgent.example.answer;
const own = (value: AgentValue['value']) => ({ from: 'default', name: null, precedence: null, value }) as const;
const assigned = (name: string, value: AgentValue['value'], precedence = 0) =>
  ({ from: 'assignment', name, precedence, value }) as const;

async function rowsOf(values: readonly AgentValue[]): Promise<(string | null)[]> {
  fakeApi().answer(listValues, values as never);
  await renderPart(<ValuesTab agent={agent} />);
  const list = await screen.findByRole('list', { name: 'Values of ntp' });
  return within(list)
    .getAllByRole('listitem')
    .filter((item) => item.parentElement === list)
    .map(({ textContent }) => textContent);
}

test('shows values with their origin and the values that they override', async () => {
  const of = { module: 'ntp', faults: [] };
  const rows = await rowsOf([
    {
      ...{ ...of, parameter: 'user', merge: 'replace', value: 'b' },
      ...{ layers: [assigned('site', 'b', 10)], overrode: [assigned('base', 'a'), own('ntp')] },
    },
    {
      ...{ ...of, parameter: 'servers', merge: 'append', value: ['p', 'a'], overrode: [] },
      layers: [assigned('base', ['a']), own(['p'])],
    },
    { ...of, parameter: 'key', merge: 'replace', value: null, layers: [], overrode: [] },
    {
      ...{ ...of, parameter: 'port', merge: 'replace', value: 1, overrode: [] },
      layers: [{ from: 'requires', name: 'shop', precedence: -1, value: 1 }],
    },
  ]);
  expect(rows).toEqual([
    'user"b"siteprecedence 10overrode"a"baseoverrode"ntp"default',
    'serversappend["p","a"]from["a"]basefrom["p"]default',
    'keyno value',
    'port1required by shop',
  ]);
});

test('shows the errors in a value, and the values that assignments set', async () => {
  const rows = await rowsOf([
    {
      ...{ module: 'ntp', parameter: 'port', merge: 'replace', value: null, overrode: [] },
      ...{ layers: [assigned('b', 'x')], faults: ['parameter port: must be a whole number'] },
    },
  ]);
  expect(rows).toEqual(['portparameter port: must be a whole numberfrom"x"b']);
});

test('reports that no module has parameters', async () => {
  fakeApi().answer(listValues, [] as never);
  await renderPart(<ValuesTab agent={agent} />);
  expect(await screen.findByText('No parameters')).toBeTruthy();
});
