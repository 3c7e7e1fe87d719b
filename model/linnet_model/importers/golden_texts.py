"""Texts of the golden examples by language, written for Linnet."""

from __future__ import annotations

TEXTS = {
    "de": [
        "Ein Hund läuft über die Straße.",
        "Wo ist der Bahnhof?",
        "Vielen Dank für Ihre Hilfe!",
        "Wenn es morgen regnet, bleiben wir zu Hause und lesen ein Buch.",
    ],
    "en": [
        "A dog runs across the street.",
        "Where is the station?",
        "Thank you very much for your help!",
        "If it rains tomorrow, we will stay at home and read a book.",
    ],
    "es": [
        "Un perro cruza la calle corriendo.",
        "¿Dónde está la estación?",
        "¡Muchas gracias por su ayuda!",
        "Si mañana llueve, nos quedaremos en casa y leeremos un libro.",
    ],
    "fr": [
        "Un chien traverse la rue en courant.",
        "Où est la gare ?",
        "Merci beaucoup pour votre aide !",
        "S'il pleut demain, nous resterons à la maison et nous lirons un livre.",
    ],
    "it": [
        "Un cane attraversa la strada di corsa.",
        "Dov'è la stazione?",
        "Grazie mille per il vostro aiuto!",
        "Se domani piove, resteremo a casa e leggeremo un libro.",
    ],
    "ja": [
        "犬が道を走って渡ります。",
        "駅はどこですか。",
        "手伝ってくれてありがとうございます。",
        "明日雨が降ったら、家で本を読みます。",
    ],
    "nl": [
        "Een hond rent over de straat.",
        "Waar is het station?",
        "Hartelijk dank voor uw hulp!",
        "Als het morgen regent, blijven we thuis en lezen we een boek.",
    ],
    "pl": [
        "Pies biegnie przez ulicę.",
        "Gdzie jest dworzec?",
        "Dziękuję bardzo za pomoc!",
        "Jeśli jutro będzie padać, zostaniemy w domu i będziemy czytać książkę.",
    ],
    "pt": [
        "Um cão atravessa a rua a correr.",
        "Onde fica a estação?",
        "Muito obrigado pela sua ajuda!",
        "Se chover amanhã, ficaremos em casa e leremos um livro.",
    ],
    "ru": [
        "Собака бежит через улицу.",
        "Где находится вокзал?",
        "Большое спасибо за вашу помощь!",
        "Если завтра пойдёт дождь, мы останемся дома и будем читать книгу.",
    ],
    "zh": [
        "一只狗跑过街道。",
        "车站在哪里？",
        "非常感谢您的帮助！",
        "如果明天下雨，我们就待在家里看书。",
    ],
}

SUMMARIES = {
    "en": [
        "The town council decided on Monday to close the old bridge to cars from May on. "
        "Engineers had found cracks in two of its pillars in the autumn. People on foot and "
        "on bicycles may still cross the river there. A new bridge is to be built a mile "
        "further north, but work on it will not begin before next year, because the money has "
        "not been granted yet. Until then drivers have to use the motorway.",
        "Bees find their way home over several miles. Researchers attached small radio "
        "transmitters to forty of them and moved them to fields where they had never been. "
        "Most of them first flew in the direction that would have been right from their old "
        "place, then turned and searched in wide loops. Within two hours thirty-one had "
        "returned to the hive. Those that were released near a river came back sooner.",
    ],
}
