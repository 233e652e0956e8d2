// Made-up texts to try with.

export const LETTER = {
  id: "A letter",
  text: `Dear Ms Quint,

Thank you for speaking with me on 14 March. My name is Tobias Fenwick and I live at 27 Pemberton Lane, Leeds LS1 4DY. I have been a customer of Bellwether Broadband since 2019, and my account number is 441-902-7.

Since last week our connection stops every evening at about eight. My wife, Dr Ines Fenwick, works from home as a radiologist and cannot go on like this. Please call her on +44 20 7946 0958 or write to ines.fenwick@example.org; I am easier to reach at tobias.fenwick@example.com.

You can take the monthly fee from IBAN DE89 3704 0044 0532 0130 00 as before. My National Insurance number, which your form asks for, is AB 12 34 56 C.

Yours sincerely,
Tobias Fenwick
`,
};

export const CALL = {
  id: "A call",
  text: `Marisol Quint: Thank you for calling Bellwether Broadband, my name is Marisol Quint. Who am I speaking with?
Tobias Fenwick: Hi Marisol, this is Tobias Fenwick. That's F-E-N-W-I-C-K.
Marisol Quint: Thank you, Mr. Fenwick. What number can we call you back on?
Tobias Fenwick: It's 415-555-0132, or write to tobias dot fenwick at example dot com.
Marisol Quint: And your account number, please?
Tobias Fenwick: Four four one, nine zero two seven. Dr. Ines Fenwick, my wife, is on it too.
Marisol Quint: May I have your date of birth?
Tobias Fenwick: March 14, 1981. The card you bill is 4111 1111 1111 1111.
Marisol Quint: Got it. Your router reports from 203.0.113.24. I'll restart it now, Tobias.`,
};
