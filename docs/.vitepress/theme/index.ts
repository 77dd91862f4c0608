import DefaultTheme from 'vitepress/theme-without-fonts';
import './style.css';

/** The theme that comes with VitePress, in the fonts of the reader's own system. */
export default DefaultTheme;
