import { useEffect, useRef, useState } from 'react';

const delayMs = 300;

/**
 * The text of a field that triggers requests: shown immediately, and reported after a pause in typing.
 * @param value the reported text; if it changes elsewhere, the field follows
 */
export function useDebouncedText(
  value: string,
  onText: (text: string) => void,
): { text: string; set: (text: string) => void } {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const reported = useRef(value);
  useEffect(() => {
    if (value === reported.current) return;
    reported.current = value;
    setText(value);
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return {
    text,
    set: (next) => {
      setText(next);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => {
        reported.current = next;
        onText(next);
      }, delayMs);
    },
  };
}
