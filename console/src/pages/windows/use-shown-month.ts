import { useUrlState } from '../../parts/url-state.ts';
import { monthOf, monthText } from './month.ts';

/** The month that the calendar shows, kept in the address. @param now Unix milliseconds, whose month is the default */
export function useShownMonth(now: number) {
  const today = new Date(now);
  const [name, setName] = useUrlState('month', '');
  const { year, month } = monthOf(name) ?? { year: today.getFullYear(), month: today.getMonth() };
  return {
    ...{ year, month },
    /** @param months how many months later; negative: earlier */
    move: (months: number) => setName(monthText(year, month, months)),
    showToday: () => setName(''),
  };
}
