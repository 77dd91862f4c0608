import { screen } from '@testing-library/react';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { SelectorInput } from './selector-input.tsx';

const vocabulary = {
  keys: () => [{ value: 'role', count: 3 }],
  values: () => ['web', 'db'].map((value) => ({ value, count: 1 })),
};

function Selector({ onSubmit }: { onSubmit: (selector: string) => void }) {
  const [value, setValue] = useState('');
  return (
    <SelectorInput
      label="Selector"
      value={value}
      onChange={setValue}
      onSubmit={() => onSubmit(value)}
      vocabulary={vocabulary}
      hint="matches 3 agents"
    />
  );
}
const field = () => screen.getByRole('combobox', { name: 'Selector' }) as HTMLInputElement;

test('completes a selector on Enter and submits it on the next Enter', async () => {
  fakeApi();
  const onSubmit = vi.fn();
  const { user } = await renderPart(<Selector onSubmit={onSubmit} />);
  await user.type(field(), 'ro{Enter}');
  expect(field().value).toBe('role');
  await user.type(field(), '=w{Enter}');
  expect(field().value).toBe('role=web ');
  expect(onSubmit).not.toHaveBeenCalled();
  await user.type(field(), '{Escape}{Enter}');
  expect(onSubmit).toHaveBeenCalledWith('role=web ');
});

test('shows the column of a syntax error in place of the hint', async () => {
  fakeApi();
  const { user } = await renderPart(<Selector onSubmit={() => {}} />);
  expect(screen.getByText('matches 3 agents')).toBeTruthy();
  await user.type(field(), '=web');
  await user.tab();
  expect(screen.getByText(/^Column 1:/)).toBeTruthy();
  expect(field().getAttribute('aria-invalid')).toBe('true');
  expect(screen.queryByText('matches 3 agents')).toBeNull();
});
