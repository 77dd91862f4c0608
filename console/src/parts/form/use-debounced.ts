import { useEffect, useRef, useState } from 'react';

/** Milliseconds without a key before what was typed counts. */
const restMs = 300;

/**
 * The text of a field that decides what is asked for: shown at once, and handed on when whoever types has come to rest.
 * @param value what counts now; when it changes from elsewhere, the field follows
 */
export function useDebouncedText(
  value: string,
  hand: (text: string) => void,
): { text: string; set: (text: string) => void } {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const handed = useRef(value);
  useEffect(() => {
    if (value === handed.current) return;
    handed.current = value;
    setText(value);
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return {
    text,
    set: (next) => {
      setText(next);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => {
        handed.current = next;
        hand(next);
      }, restMs);
    },
  };
}
