import { useEffect, useState } from 'react';

/** Characters. Parsing a longer text would delay the next keystroke. */
const maxInstantLength = 16 * 1024;
const settleMs = 250;

/** Returns the text, or for a long text its value after a pause in typing. */
export function useSettledText(text: string): string {
  const [settled, setSettled] = useState(text);
  const isLong = text.length > maxInstantLength;
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), isLong ? settleMs : 0);
    return () => window.clearTimeout(timer);
  }, [text, isLong]);
  return isLong ? settled : text;
}
