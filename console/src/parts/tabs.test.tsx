import { render } from '@testing-library/react';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Tabs } from './tabs.tsx';

test('scrolls the selected tab into view', () => {
  const scroll = vi.spyOn(Element.prototype, 'scrollIntoView');
  onTestFinished(() => scroll.mockRestore());
  const tabs = ['one', 'two'].map((value) => ({ value, label: value, content: () => value }));
  const { rerender } = render(<Tabs label="Pages" value="one" onChange={() => {}} tabs={tabs} />);
  rerender(<Tabs label="Pages" value="two" onChange={() => {}} tabs={tabs} />);
  expect(scroll.mock.instances.map((element) => (element as unknown as Element).textContent)).toEqual(['one', 'two']);
});
