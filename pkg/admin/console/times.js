// Times as people read them. All are in UTC, as those of the logs and of usage.

const zone = { timeZone: "UTC", hourCycle: "h23" };
const clockOf = new Intl.DateTimeFormat("en", { ...zone, hour: "2-digit", minute: "2-digit" });
const dayOf = new Intl.DateTimeFormat("en", { ...zone, day: "numeric", month: "short" });
const yearOf = new Intl.DateTimeFormat("en", { ...zone, month: "short", year: "numeric" });

// clock returns the time of day, such as 14:05. It takes what Date takes.
export const clock = (time) => clockOf.format(new Date(time));

// day returns the day, such as Nov 22.
export const day = (time) => dayOf.format(new Date(time));

// month returns the month, such as Nov 2026.
export const month = (time) => yearOf.format(new Date(time));

// stamp returns a time such as 2026-11-22 14:05:09.
export const stamp = (time) => new Date(time).toISOString().slice(0, 19).replace("T", " ");

// ago returns how long ago a time was, in words.
export function ago(time, now = Date.now()) {
  const past = since(time, now);
  return past === "0 s" ? "now" : past + " ago";
}

// since returns the time from one time to another, in words.
export function since(time, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - new Date(time).getTime()) / 1000));
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 100 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
