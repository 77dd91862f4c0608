import { attributesOf, parseSelector } from '@muster/protocol/selector';
import { useState } from 'react';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { useMatchHint } from '../use-match-hint.ts';

/** A maintenance window's selector. The window applies to all agents that match it while the window is open. */
export function WindowSelectorField({
  selector,
  onChange,
}: {
  readonly selector: string;
  readonly onChange: (selector: string) => void;
}) {
  const [settled, setSettled] = useState(selector);
  const typed = useDebouncedText(settled, setSettled);
  const vocabulary = useSelectorVocabulary();
  const hint = useMatchHint(settled, 'while it is open');
  const parsed = parseSelector(settled);
  const attributes = parsed.ok ? attributesOf(parsed.selector) : [];
  return (
    <>
      <SelectorInput
        label="Selector"
        value={typed.text}
        onChange={(text) => {
          typed.set(text);
          onChange(text);
        }}
        vocabulary={vocabulary}
        hint={hint}
      />
      {attributes.length > 0 && (
        <p role="alert" className="text-sm text-warn">
          Agents report their own attributes. A compromised agent can match this window to mute its notifications.
          Select by tags instead.
        </p>
      )}
    </>
  );
}
