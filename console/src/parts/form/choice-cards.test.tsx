import { screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { ChoiceCards } from './choice-cards.tsx';

const choices = [
  { value: 'enforce', label: 'Enforce', detail: 'Applies changes' },
  { value: 'audit', label: 'Audit', detail: 'Changes nothing' },
] as const;

test('selects the card with the value and reports a click on another card', async () => {
  fakeApi();
  const onChange = vi.fn();
  const { user } = await renderPart(
    <ChoiceCards legend="Mode" choices={choices} value="enforce" onChange={onChange} />,
  );
  const cards = screen.getAllByRole('radio') as HTMLInputElement[];
  expect(cards.map(({ checked }) => checked)).toEqual([true, false]);
  await user.click(screen.getByText('Changes nothing'));
  expect(onChange.mock.calls).toEqual([[choices[1]]]);
});

test('selects no card if no card has the value', async () => {
  fakeApi();
  await renderPart(<ChoiceCards legend="Pace" choices={choices} value="own" onChange={() => {}} />);
  expect((screen.getAllByRole('radio') as HTMLInputElement[]).some(({ checked }) => checked)).toBe(false);
});
