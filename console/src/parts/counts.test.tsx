import { render } from '@testing-library/react';
import { expect, test } from 'vitest';
import { Counts } from './counts.tsx';

const items = ['2 changed', '1 unchanged'].map((text) => ({ key: text, text, className: '' }));

test('separates counts by dots on one line', () => {
  expect(render(<Counts items={items} />).container.textContent).toBe('2 changed · 1 unchanged');
});

test('keeps each dot with the count after it if the line wraps', () => {
  const { container } = render(<Counts wrap items={items} />);
  const counts = [...container.querySelectorAll('.whitespace-nowrap')];
  expect(counts.map(({ textContent }) => textContent)).toEqual(['2 changed, ', '·1 unchanged']);
});
